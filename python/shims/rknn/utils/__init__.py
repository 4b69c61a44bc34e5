"""Helpers of the vendor's package; none is in this version."""
