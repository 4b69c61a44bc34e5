"""Which target a program means, and which SoCs there are."""

import os
import platform

import rknnd

PLATFORMS = ("rk2118", "rk3562", "rk3566", "rk3568", "rk3576", "rk3588", "rv1103", "rv1103b",
             "rv1106", "rv1106b", "rv1126b")
_DEFAULT_SOCKET = "/run/rknnd/session.sock"
_URLS = ("unix:", "tcp://", "local:")


def on_board():
    """Whether this machine could be a board with an NPU."""
    return platform.machine() in ("aarch64", "armv7l")


def choose_target(target, device_id):
    """The rknnd target for a program's `target` and `device_id`; None is what
    RKNND_TARGET or the default says. Raises ValueError."""
    if device_id is not None:
        address = str(device_id)
        if address.startswith(_URLS):
            return address
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(
                f"device_id '{address}' is no HOST:PORT: rknnd reaches boards over TCP and not "
                "over adb; start rknnd there with --grpc and give its address")
        return "tcp://" + address
    if target is not None:
        name = str(target)
        if name.startswith(_URLS):
            return name
        if name.lower() not in PLATFORMS:
            raise ValueError(f"Unsupported target platform: {target}. Supported: "
                             f"{', '.join(PLATFORMS)}")
    if os.environ.get("RKNND_TARGET") or on_board() or os.path.exists(_DEFAULT_SOCKET):
        return None
    return "local:"


def list_targets():
    """What RKNND_TARGET names, where it answers."""
    named = os.environ.get("RKNND_TARGET", "")
    if named.startswith("local:") or not (named or os.path.exists(_DEFAULT_SOCKET)):
        return []
    try:
        rknnd.status()
    except rknnd.Error:
        return []
    return [named or "unix:" + _DEFAULT_SOCKET]


def print_devices():
    """(adb, ntb) as the vendor's list_devices() gives it, with rknnd's targets in
    the first list, printed in the same frame."""
    devices = list_targets()
    if devices:
        print("*************************")
        print("all device(s) with rknnd:")
        for device in devices:
            print(device)
        print("*************************")
    else:
        print("None devices connected.")
    return devices, []
