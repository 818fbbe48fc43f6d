//! Tests that the schemas in `docs/formats` match the documents of this crate.

use testkit::{PublishedSchema, assert_published};

use crate::{diff_report, page, since_report};

#[test]
fn schemas_are_published() {
    assert_published::<diff_report::Document<'_, diff_report::CarriersAndHosts<'_>>>(
        &PublishedSchema::new("fleet_diff"),
    );
    assert_published::<since_report::Document<'_, since_report::CarriersAndHosts<'_>>>(
        &PublishedSchema::new("fleet_since"),
    );
    assert_published::<page::Document<'_>>(&PublishedSchema::new("fleet_page"));
}
