//! Nothing is guessed across a loss.

use timeline::Outcome;

use super::host::{Found, Host, windows};

const V: i32 = 100;
const OTHER: i32 = 7;

fn outcomes(host: &Host) -> Vec<(u64, Outcome)> {
    host.exits().iter().map(|exit| (exit.span.start_ns, exit.span.outcome)).collect()
}

#[test]
fn a_pair_around_a_loss_is_dropped_and_its_neighbours_are_kept() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 1).entry(0, 1_100, V, 0).exit(0, 2_000, V, 2);
    host.lose(0).entry(0, 2_900, V, 0).exit(0, 3_000, V, 3).entry(0, 3_100, V, 0);
    let expected = [(1_000, Outcome::Paired), (2_000, Outcome::LostIn), (3_000, Outcome::Paired)];
    assert_eq!(outcomes(&host), expected);
    assert_eq!(host.exits()[2].span.guest_ns, 100, "the guest ran after the loss");
}

#[test]
fn a_loss_while_the_guest_runs_leaves_both_pairs() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 1).entry(0, 1_100, V, 0);
    host.lose(0).exit(0, 3_000, V, 3).entry(0, 3_100, V, 0);
    assert_eq!(windows(&host.exits()), [(1_000, Some(1_100)), (3_000, Some(3_100))]);
    assert_eq!(host.exits()[1].span.guest_ns, 0, "whether the guest ran all the time is unknown");
}

#[test]
fn a_loss_elsewhere_drops_what_can_not_be_proven() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 1).entry(0, 1_500, V, 0).exit(0, 3_000, V, 3).entry(0, 3_100, V, 0);
    // The thread may have been there between 1 000 and 1 500.
    host.event(1, 900, OTHER, "softirq_entry", &[]).lose(1);
    host.event(1, 1_400, OTHER, "softirq_entry", &[]);
    assert_eq!(outcomes(&host), [(1_000, Outcome::LostIn), (3_000, Outcome::Paired)]);
}

#[test]
fn a_loss_elsewhere_is_no_matter_for_a_thread_that_stayed() {
    let mut host = Host::x86();
    // A switch was recorded before: this thread's switches are in the recording.
    host.exit(0, 500, V, 1).switch(0, 510, V, 0, OTHER).switch(0, 520, OTHER, 0, V);
    host.entry(0, 530, V, 0).exit(0, 1_000, V, 1).entry(0, 1_500, V, 0);
    host.event(1, 900, OTHER, "softirq_entry", &[]).lose(1);
    host.event(1, 1_400, OTHER, "softirq_entry", &[]);
    assert_eq!(windows(&host.exits()), [(500, Some(530)), (1_000, Some(1_500))]);
}

#[test]
fn a_loss_elsewhere_matters_for_a_thread_that_left_its_cpu() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 1).switch(0, 1_010, V, 0, OTHER).switch(0, 1_490, OTHER, 0, V);
    host.entry(0, 1_500, V, 0);
    host.event(1, 900, OTHER, "softirq_entry", &[]).lose(1);
    host.event(1, 1_400, OTHER, "softirq_entry", &[]);
    assert_eq!(outcomes(&host), [(1_000, Outcome::LostIn)]);
}

/// The buffer of one CPU was overwritten up to a moment at which another's goes far back.
#[test]
fn a_loss_before_the_thread_was_first_seen_counts() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 1).entry(0, 1_500, V, 0).exit(0, 3_000, V, 3).entry(0, 3_100, V, 0);
    host.lose(1).event(1, 2_000, OTHER, "softirq_entry", &[]);
    assert_eq!(outcomes(&host), [(1_000, Outcome::LostIn), (3_000, Outcome::Paired)]);
}

#[test]
fn a_loss_leaves_other_times_known() {
    let mut host = Host::x86();
    host.event(1, 100, OTHER, "softirq_entry", &[]).lose(1);
    host.event(1, 999, OTHER, "softirq_entry", &[]).event(1, 1_600, OTHER, "softirq_entry", &[]);
    host.lose(1).event(1, 1_700, OTHER, "softirq_entry", &[]);
    host.exit(0, 1_000, V, 1).entry(0, 1_500, V, 0);
    assert_eq!(outcomes(&host), [(1_000, Outcome::Paired)]);
}

/// Pages of one CPU are damaged up to its end: what happened there is unknown for good.
#[test]
fn damage_at_the_end_of_a_stream_is_a_loss() {
    let mut host = Host::x86();
    host.shape.events_per_page = 1;
    host.exit(0, 1_000, V, 1).entry(0, 1_100, V, 0).exit(0, 2_000, V, 2);
    // The thread goes to another CPU and comes back: 2 000 to 9 000 is no pair.
    host.entry(0, 9_000, V, 0);
    host.event(1, 1_500, OTHER, "softirq_entry", &[]).entry(1, 3_000, V, 0);
    host.exit(1, 4_000, V, 3);
    let mut file = host.file();
    let pages = file.len() / 4096;
    for page in (0..pages).map(|page| page * 4096) {
        let stamp = u64::from_le_bytes(file[page..page + 8].try_into().unwrap());
        if stamp == 3_000 || stamp == 4_000 {
            file[page + 8..page + 16].fill(0xff);
        }
    }
    let found = Found::in_file(&file);
    assert_eq!(found.pass.losses.pages_damaged(), 2);
    let outcomes: Vec<_> =
        found.exits.iter().map(|exit| (exit.span.start_ns, exit.span.outcome)).collect();
    assert_eq!(outcomes, [(1_000, Outcome::Paired), (2_000, Outcome::LostIn)]);
}

#[test]
fn level_is_not_carried_over_a_loss() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x80)
        .event(0, 1_050, V, "kvm_nested_vmenter", &[])
        .entry(0, 1_100, V, 0);
    host.lose(0).exit(0, 3_000, V, 0x60).entry(0, 3_100, V, 0);
    let levels: Vec<_> = host.exits().iter().map(|exit| exit.span.level).collect();
    assert_eq!(levels, [1, 1]);
}

/// The file ends before the pages of one CPU do, or before they begin.
#[test]
fn what_a_cut_file_lacks_is_a_loss() {
    let mut host = Host::x86();
    host.shape.version = tracedat::Version::V6;
    host.shape.events_per_page = 1;
    host.exit(0, 1_000, V, 1).entry(0, 1_100, V, 0).exit(0, 2_000, V, 2).entry(0, 9_000, V, 0);
    host.event(3, 1_500, OTHER, "softirq_entry", &[]).entry(3, 3_000, V, 0);
    host.exit(3, 4_000, V, 3);
    let file = host.file();
    let page_at = |ns: u64| {
        let mut pages = (0..file.len()).step_by(4096);
        pages.find(|&at| file[at..at + 8] == ns.to_le_bytes()).unwrap()
    };
    let outcomes = |len: usize| -> Vec<_> {
        let found = Found::in_file(&file[..len]);
        assert!(!found.recording.damage().is_empty());
        found.exits.iter().map(|exit| (exit.span.start_ns, exit.span.outcome)).collect()
    };
    let (paired, lost) = (Outcome::Paired, Outcome::LostIn);
    assert_eq!(outcomes(page_at(3_000)), [(1_000, paired), (2_000, lost)]);
    assert_eq!(outcomes(page_at(1_500)), [(1_000, lost), (2_000, lost)]);
}

/// Kernels leave out switches that they have made: what a thread does shows it.
#[test]
fn switches_that_nobody_traced_are_counted() {
    let unseen = |act: fn(&mut Host)| {
        let mut host = Host::x86();
        // A first switch away and back, so that switches are known to be recorded.
        host.entry(0, 1_000, V, 0).exit(0, 1_100, V, 0x78);
        host.switch(0, 1_200, V, 1, 0).switch(0, 1_300, 0, 0, V).entry(0, 1_400, V, 0);
        host.exit(0, 2_000, V, 0x78);
        act(&mut host);
        host.entry(0, 9_000, V, 0);
        host.read().pass.switches_unseen
    };
    let there_and_back: fn(&mut Host) = |host| {
        host.switch(0, 2_100, V, 1, 0).switch(0, 2_500, 0, 0, V);
    };
    let only_there: fn(&mut Host) = |host| {
        host.switch(0, 2_100, V, 1, 0);
    };
    let only_back: fn(&mut Host) = |host| {
        host.switch(0, 2_500, 0, 0, V);
    };
    let there_twice: fn(&mut Host) = |host| {
        host.switch(0, 2_100, V, 1, 0);
        host.switch(0, 2_500, V, 1, 0).switch(0, 2_600, 0, 0, V);
    };
    assert_eq!([there_and_back, only_there, only_back, there_twice].map(unseen), [0, 1, 1, 1]);
    // Where events were lost that is why.
    let lost: fn(&mut Host) = |host| {
        host.switch(0, 2_100, V, 1, 0).lose(0);
        host.event(0, 2_200, OTHER, "sched_waking", &[("pid", 8)]);
    };
    assert_eq!(unseen(lost), 0);
}
