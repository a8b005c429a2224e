"""Content types: parsing them, matching them against Accept, and the codecs of the common ones.

A codec turns bytes into a Python value and back. JSON is msgspec's: numpy arrays become nested lists, numpy scalars
numbers, and NaN and the infinities become ``null`` (the one policy for non-finite numbers, in every contract). NPY and
NPZ never unpickle. Numpy is imported only where it is present.
"""
