"""Python runs this first in every process of an attack: it puts the instruments in, and changes nothing else."""

from tests.torture.instruments import install

install()
