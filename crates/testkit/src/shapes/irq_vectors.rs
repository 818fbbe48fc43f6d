//! Events of x86's own interrupt vectors.

use super::Shape;

const FIELDS: &[(&str, &str)] = &[("int", "vector")];
const PRINT: &str = r#""vector=%d", REC->vector"#;

pub(super) const SHAPES: &[Shape] = &[
    Shape { system: "irq_vectors", name: "irq_work_entry", fields: FIELDS, print: PRINT },
    Shape { system: "irq_vectors", name: "irq_work_exit", fields: FIELDS, print: PRINT },
];
