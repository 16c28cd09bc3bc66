"""A project of a few MB: staging, intermediate models and marts, as packages for one service's data are built."""
