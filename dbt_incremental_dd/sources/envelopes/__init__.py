"""How a source's records are changes: each envelope is one module, and all that is special to it is there."""
