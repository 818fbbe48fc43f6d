//! Measures the cost of exits in this machine, by a plan in JSON.

use std::io;
use std::sync::atomic::AtomicBool;

/// Prints the measurements as JSON.
pub(crate) fn run(plan: Option<String>) -> io::Result<()> {
    let plan: labguest::exitcost::MeasureOptions = serde_json::from_str(&plan.unwrap_or_default())?;
    let sheet = labguest::exitcost::measure(&plan).map_err(io::Error::other)?;
    println!("{}", serde_json::to_string(&sheet)?);
    Ok(())
}

/// Measures with one setting changed at a time. A signal to this program ends it.
pub(crate) fn ablate(plan: Option<String>) -> io::Result<()> {
    let plan: labguest::exitcost::AblationOptions =
        serde_json::from_str(&plan.unwrap_or_default())?;
    let sheet =
        labguest::exitcost::ablate(&plan, &AtomicBool::new(false)).map_err(io::Error::other)?;
    println!("{}", serde_json::to_string(&sheet)?);
    Ok(())
}

/// Prints the number of exits of this machine's KVM as JSON: counting starts with the first call, and ends with `end`.
pub(crate) fn count(end: Option<&str>) -> io::Result<()> {
    if end == Some("end") {
        return labguest::exitcost::end_exit_counts();
    }
    println!("{}", serde_json::to_string(&labguest::exitcost::exit_counts()?)?);
    Ok(())
}
