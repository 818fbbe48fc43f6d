//! Tests that the schemas in `docs/formats` match the documents of this crate.

use schemars::JsonSchema;
use testkit::{PublishedSchema, assert_published};

use crate::{
    ab, advice, align, boot, calls, cpu, critical, diff, exits, html, info, irqs, nested, part,
    path, profile, why,
};
use crate::{sensitivity, virtio, vmm};

/// For a verb that can read recordings in part.
fn assert_in_part<D: JsonSchema>(verb: &str) {
    assert_whole::<part::Document<'_, D>>(verb);
}

fn assert_whole<D: JsonSchema>(verb: &str) {
    assert_published::<D>(&PublishedSchema::new(verb));
}

#[test]
fn schemas_of_recordings_are_published() {
    assert_in_part::<advice::Document<'_>>("advice");
    assert_in_part::<align::Document<'_>>("align");
    assert_in_part::<boot::Document<'_>>("boot");
    assert_in_part::<calls::Document<'_>>("calls");
    assert_in_part::<cpu::Document<'_>>("cpu");
    assert_in_part::<critical::Document<'_>>("critical");
    assert_in_part::<diff::Document<'_>>("diff");
    assert_in_part::<exits::Document<'_>>("exits");
    assert_in_part::<info::Document<'_>>("info");
    assert_in_part::<irqs::Document<'_>>("irqs");
    assert_in_part::<nested::Document<'_>>("nested");
    assert_in_part::<path::Document<'_>>("path");
    assert_in_part::<profile::Document<'_>>("profile");
    assert_in_part::<virtio::Document<'_>>("virtio");
    assert_in_part::<vmm::Document<'_>>("vmm");
    assert_in_part::<why::Document<'_>>("why");
}

#[test]
fn the_schema_of_the_page_is_published() {
    assert_whole::<html::Document<'_>>("report");
}

#[test]
fn schemas_of_experiments_are_published() {
    assert_whole::<ab::Document<'_>>("ab");
    assert_whole::<sensitivity::Document<'_>>("sensitivity");
}
