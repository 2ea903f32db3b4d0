"""Memory filled to three times its size."""


def offload(stage):
    """To come."""
    stage.expect("written", 0, 1)
