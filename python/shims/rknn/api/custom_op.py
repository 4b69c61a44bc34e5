"""Custom operators of programs."""

from .not_here import not_in_this_version


def get_node_attr(node, attr_name):
    """Raises ValueError: not in this version."""
    raise not_in_this_version("get_node_attr")
