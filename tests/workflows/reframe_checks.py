"""ReFrame's tests: one without parameters, one with."""

from __future__ import annotations

from typing import ClassVar

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, sanity_function


class Copied(rfm.RunOnlyRegressionTest):
    """Something is printed on one node."""

    valid_systems: ClassVar = ["*"]
    valid_prog_environs: ClassVar = ["*"]
    executable = "echo"
    executable_opts: ClassVar = ["copied"]

    @sanity_function
    def is_copied(self) -> bool:
        """Return whether it was printed."""
        return sn.assert_found("copied", self.stdout)


@rfm.simple_test
class Plain(Copied):
    """Its job is called rfm_Plain."""


@rfm.simple_test
class Sized(Copied):
    """Its job's name ends with a hash of the parameter."""

    size = parameter([1])
