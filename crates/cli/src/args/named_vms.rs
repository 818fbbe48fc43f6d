//! Which names a verb is given for VMs of the recordings that it reads.

use session::{VmName, VmNames};

use super::{Verb, lake};

impl Verb {
    /// What VMs of recordings are called.
    fn vm_names(&self) -> &[VmName] {
        let vms = match self {
            Self::Events(args) => return &args.names.names,
            Self::Lake(args) => match &args.verb {
                lake::LakeVerb::Add(args) => return &args.names.names,
                _ => return &[],
            },
            Self::Boot(args) => &args.vms,
            Self::Export(args) => &args.vms,
            Self::Exits(args) => &args.part.vms,
            Self::Nested(args) | Self::Advice(args) | Self::Info(args) => &args.part.vms,
            Self::Diff(args) => &args.part.vms,
            Self::Cpu(args) => &args.part.vms,
            Self::Profile(args) => &args.part.vms,
            Self::Irqs(args) => &args.part.vms,
            Self::Virtio(args) => &args.part.vms,
            Self::Vmm(args) => &args.part.vms,
            Self::Calls(args) => &args.part.vms,
            Self::Path(args) => &args.part.vms,
            Self::Critical(args) => &args.part.vms,
            Self::Hypertrace(args) => &args.part.vms,
            Self::Align(args) => &args.part.vms,
            Self::Report(args) => &args.part.vms,
            _ => return &[],
        };
        &vms.names.names
    }

    /// Names for all recordings that the verb opens.
    pub(crate) fn names_of_vms(&self) -> VmNames {
        // Recordings that are compared, or added one by one, need not have the same VMs.
        let are_together = !matches!(self, Self::Diff(_) | Self::Lake(_));
        VmNames::new(self.vm_names(), are_together)
    }
}
