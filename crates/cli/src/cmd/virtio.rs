//! `hyperscope virtio`: what the queues of guests carry.

use analyses::virtio::virtio;
use report::VirtioReport;
use session::{Selection, Session};

use crate::args::virtio::VirtioArgs;
use crate::output;
use crate::progress::reading;

pub(crate) fn run(args: &VirtioArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    session.select_on_host_clock(&Selection::from(&args.part), args.method.method())?;
    session.say_unaligned();
    let report = VirtioReport {
        virtio: reading(&session, 1, |tick| virtio(session.view(), tick)),
        sources: session.paths(),
        recorder_cost: session.recorder_cost(),
    };
    output::write_part(&report, session.part(), &args.output, out)
}
