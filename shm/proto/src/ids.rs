//! Numbers that name something, each with a type of its own so that two of them cannot be swapped.
//!
//! Why: a frame carries a connection, its generation, a sequence number and a slot, all of them
//! small integers; handing them around as bare `u32`s would make a mix-up compile.
//!
//! Not here: command ids (`catalogue`), counters (`counters`).

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The bare number.
            #[inline]
            #[must_use]
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(number: $inner) -> Self {
                Self(number)
            }
        }
    };
}

id! {
    /// What `CLIENT ID` shows: unique for the life of the system, rising, never reused.
    ClientId(u64)
}
id! {
    /// Place of a connection in its gateway thread's table; reused, hence always with a generation.
    ConnectionId(u32)
}
id! {
    /// How often a place or a process has been given to somebody new. A frame with an old one is
    /// for somebody who is gone.
    Generation(u32)
}
id! {
    /// Number of a storage worker, from 0, dense.
    WorkerIndex(u16)
}
id! {
    /// Number of a gateway thread, from 0, dense over all gateway processes.
    GatewayThreadIndex(u16)
}
id! {
    /// Number of a database, as in `SELECT`.
    Database(u16)
}
