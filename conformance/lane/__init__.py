"""The conformance lane: the same scenarios on the C++ masters and on this one, compared answer by answer."""
