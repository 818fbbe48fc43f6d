//! Compares the events of every recording by name with counts from the output of `trace-cmd report`.

use std::collections::BTreeMap;

use analyses::contents::{contents, contents_and_vms};
use analyses::vms::find_vms;

use super::{ALL, open, truth};

#[test]
fn every_event_is_counted() {
    for name in ALL {
        let truth = truth(name);
        let expected: BTreeMap<String, u64> = truth["events"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(event, count)| (event.clone(), count.as_u64().unwrap()))
            .collect();
        let contents = contents(&open(name), &|_| ());
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for (event, count) in &contents.events {
            // The truth has no event systems.
            let (_, event) = event.split_once(':').unwrap();
            *found.entry(event.to_owned()).or_default() += count;
        }
        assert_eq!(found, expected, "{name}");
        assert_eq!(contents.total(), expected.values().sum::<u64>(), "{name}");
        assert_eq!(contents.first_ns(), truth["first_ns"].as_u64(), "{name}");
        assert_eq!(contents.last_ns(), truth["last_ns"].as_u64(), "{name}");
        assert_eq!((contents.events_lost(), contents.pages_damaged()), (0, 0), "{name}");
    }
}

#[test]
fn reading_once_for_contents_and_vms_gives_both() {
    for name in ALL {
        let recording = open(name);
        let (found, vms) = contents_and_vms(&recording, &|_| ());
        assert_eq!(format!("{found:?}"), format!("{:?}", contents(&recording, &|_| ())), "{name}");
        assert_eq!(vms, find_vms(&recording, &|_| ()), "{name}");
    }
}
