//! Measures what exits cost in this machine, as it is asked to by a plan in JSON.

use std::io;
use std::sync::atomic::AtomicBool;

/// Prints what was measured as JSON.
pub(crate) fn run(plan: Option<String>) -> io::Result<()> {
    let plan: labguest::exitcost::MeasureOptions = serde_json::from_str(&plan.unwrap_or_default())?;
    let sheet = labguest::exitcost::measure(&plan).map_err(io::Error::other)?;
    println!("{}", serde_json::to_string(&sheet)?);
    Ok(())
}

/// The same with one thing switched at a time. Whoever ends this machine ends that.
pub(crate) fn ablate(plan: Option<String>) -> io::Result<()> {
    let plan: labguest::exitcost::AblationOptions =
        serde_json::from_str(&plan.unwrap_or_default())?;
    let sheet =
        labguest::exitcost::ablate(&plan, &AtomicBool::new(false)).map_err(io::Error::other)?;
    println!("{}", serde_json::to_string(&sheet)?);
    Ok(())
}

/// Prints exits of this machine's KVM so far, as JSON: from the first time that it is asked on, until `end`.
pub(crate) fn count(end: Option<&str>) -> io::Result<()> {
    if end == Some("end") {
        return labguest::exitcost::end_exit_counts();
    }
    println!("{}", serde_json::to_string(&labguest::exitcost::exit_counts()?)?);
    Ok(())
}
