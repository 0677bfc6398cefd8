//! What two processes share in memory: segments, rings, doorbells, pages, arenas and journals.
