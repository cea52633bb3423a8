"""The claims themselves, grouped by the part of the story they are told in."""
