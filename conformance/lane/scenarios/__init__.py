"""The scenarios, by name, in the order they are played.

A scenario is a function of a run (see runner.Run): it starts a master and clients, and notes what they answer under names that do
not depend on the master. It never judges: the comparison does. What a master may do at any moment is noted only after
waiting for it.
"""

from typing import Callable, NamedTuple


class Scenario(NamedTuple):
    """A body and the runs it belongs to."""

    body: Callable
    applies: Callable


SCENARIOS = {}


def scenario(body=None, *, slow=False, only_14=False):
    """Registers a scenario under its function's name; slow ones are left out of quick runs, only_14 ones of the 0.3.13 lane."""

    def register(function):
        def applies(run):
            return not (slow and run.quick) and not (only_14 and run.reference != "0.3.14")

        SCENARIOS[function.__name__] = Scenario(function, applies)
        return function

    return register(body) if body else register


from . import objects, memory, tenants, life, moves, disk  # noqa: E402,F401  (each registers its scenarios)
