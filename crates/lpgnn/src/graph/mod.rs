mod batch;
mod communicator;
mod exchange;
mod features;
mod groups;
mod level;
mod neighbours;
mod parts;
mod patch;
mod share;
mod targets;
mod topology;

pub(crate) use batch::check_starts;
pub use batch::{BatchParts, GraphBatch};
pub use communicator::{Alone, Communicator, Incoming, Outgoing, OutgoingRows, Pending};
pub use exchange::{Exchange, Local, Reduce};
pub use features::{Features, FeaturesView, OneHot, SparseRows};
pub use groups::Groups;
pub(crate) use groups::MOST_GROUPS;
pub use level::Level;
pub use neighbours::{NO_EDGE, Neighbours};
pub(crate) use parts::PartRows;
pub(crate) use patch::Patch;
pub use share::Share;
pub(crate) use share::agree;
pub use targets::{NO_TARGET, Targets};
pub use topology::{Ghosts, Part, Topology};

use crate::Error;

/// # Errors
///
/// [`Error::EdgeOutOfRange`], naming the first edge that leaves `0..nodes`.
pub(crate) fn check_range(nodes: usize, edges: &[(u32, u32)]) -> Result<(), Error> {
    for (edge, &(source, target)) in edges.iter().enumerate() {
        let node = source.max(target) as usize;
        if node >= nodes {
            return Err(Error::EdgeOutOfRange { edge, node, nodes });
        }
    }
    Ok(())
}
