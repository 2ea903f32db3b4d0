"""The original's own Python checks against the C++ masters and this one, compared test by test."""
