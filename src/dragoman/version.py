"""The version of the package, for every room; the build reads it here."""

__version__ = "0.1.0"
