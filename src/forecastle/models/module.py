"""Sources that are importable modules."""

from __future__ import annotations

import importlib
import importlib.util
import keyword

from forecastle.errors import BadArtifact
from forecastle.models.formats import ENDINGS

# A missing shipping.py is a missing file, not the submodule "py" of shipping: looking for that would run shipping.
_FILE_ENDINGS = {"py", "zip", "params", "mar", "tar", "gz", "tgz", *(ending[1:] for ending in ENDINGS)}


def looks_like_module(source: str) -> bool:
    """Whether it has the form of a dotted module name; a name with a hyphen, a slash or a file's ending has not."""
    parts = source.split(".")
    if len(parts) > 1 and parts[-1].lower() in _FILE_ENDINGS:
        return False
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in parts)


def is_module(source: str) -> bool:
    """Whether it names a module that can be imported; the packages above it are imported to find out, itself is not.

    Raises:
        BadArtifact: a package above it fails to import.
    """
    if not looks_like_module(source):
        return False
    importlib.invalidate_caches()
    try:
        spec = importlib.util.find_spec(source)
    except ValueError:  # a module that was made by hand, __main__ among them
        return False
    except (Exception, SystemExit) as error:  # the packages above are the user's code, and may raise anything
        if isinstance(error, ModuleNotFoundError) and error.name and f"{source}.".startswith(f"{error.name}."):
            return False
        parent = source.rpartition(".")[0]
        raise BadArtifact(
            f"{source}: importing the package {parent} failed with {type(error).__name__}: {error}"
        ) from error
    # Any directory on the path counts as a package without content; such a one has no origin.
    return spec is not None and spec.origin is not None
