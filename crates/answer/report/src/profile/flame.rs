//! The flame graph of a profile: the width of a frame is its share of all vCPUs' time.

use analyses::states::VcpuState;

use super::ProfileReport;
use super::stacks::{Node, Tree};
use crate::flame::{Begins, Drawing, Frame, class};
use crate::units::{plural, share, time};

/// Colours of frames: the host's kernel, guests, the VMM.
const HOST: usize = 0;
const GUEST: usize = 1;
const VMM: usize = 2;

/// The graph.
pub(super) fn flame(report: &ProfileReport, title: &str) -> String {
    let tree = Tree::new(report);
    let whole_ns = tree.total_ns();
    let part = |ns: u64| ns as f64 / whole_ns.max(1) as f64;
    let mut drawing = Drawing::default();
    let mut begins = Begins::at(0);
    tree.walk(|depth, node| {
        drawing.push(Frame {
            depth,
            offset: part(begins.place(depth, node.total_ns)),
            width: part(node.total_ns),
            name: node.name.clone(),
            title: tip(report, node, whole_ns),
            class: colour(node),
        })
    });
    drawing.document(
        title,
        "width: time of vCPUs · cool: guest · warm: host kernel · green: VMM · grey: not running",
    )
}

fn tip(report: &ProfileReport, node: &Node, whole_ns: u64) -> String {
    let amount = time(node.total_ns, report.profile.nanoseconds);
    let mut tip = format!("{amount} ({})", share(node.total_ns, whole_ns));
    if node.samples > 0 {
        tip += &format!("\n{}", plural(node.samples, "sample"));
    }
    tip
}

fn colour(node: &Node) -> String {
    use VcpuState::{BeforeExit, Blocked, ExitKernel, ExitUser, Halted, NotSplit, Unknown};
    match node.state {
        None => "n".to_owned(),
        Some(state) if state.is_guest() => class(GUEST, &node.name),
        Some(ExitKernel | BeforeExit | NotSplit | VcpuState::HaltPoll) => class(HOST, &node.name),
        Some(ExitUser) => class(VMM, &node.name),
        Some(Halted | Blocked | Unknown) => "n".to_owned(),
        Some(_) => "o".to_owned(),
    }
}
