//! The machines and hypervisors that come with the program, by name.

use serde::de::{self, DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

use crate::hypervisor::Hypervisor;
use crate::machine::Machine;

/// Names and texts of the files of a folder.
macro_rules! embedded {
    ($folder:literal: $($name:literal)*) => {
        [$(($name, include_str!(concat!("../", $folder, "/", $name, ".toml")))),*]
    };
}

const MACHINES: [(&str, &str); 9] = embedded! { "machines":
    "oracle-x5-4" "oracle-x5-8" "xeon-8380l" "xeon-6-288" "ibm-x3650"
    "westmere-ex" "haswell-ex" "power9-16" "epyc-7551"
};

const HYPERVISORS: [(&str, &str); 5] = embedded! { "hypervisors":
    "linux-bare-metal" "kvm-2010" "kvm-2015" "kvm-dedicated" "power-bare-metal"
};

/// Something that a scenario describes, or refers to by its name here.
pub trait Named: DeserializeOwned {
    /// What it is, for messages.
    const KIND: &'static str;

    /// Names and descriptions.
    fn texts() -> &'static [(&'static str, &'static str)];

    /// The description of that name.
    ///
    /// # Errors
    /// The name does not exist; the message lists the names that do.
    fn named(name: &str) -> Result<Self, String> {
        let texts = Self::texts();
        let Some((_, text)) = texts.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = texts.iter().map(|(known, _)| *known).collect();
            let (kind, known) = (Self::KIND, known.join(", "));
            return Err(format!(
                "no {kind} is called `{name}`: there are {known}; or describe one in a table of the \
                 scenario"
            ));
        };
        toml::from_str(text).map_err(|error| format!("{} {name}: {error}", Self::KIND))
    }
}

impl Named for Machine {
    const KIND: &'static str = "machine";
    fn texts() -> &'static [(&'static str, &'static str)] {
        &MACHINES
    }
}

impl Named for Hypervisor {
    const KIND: &'static str = "hypervisor";
    fn texts() -> &'static [(&'static str, &'static str)] {
        &HYPERVISORS
    }
}

/// A name, or a description in place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Described<T>(pub(crate) T);

impl<'de, T: Named> Deserialize<'de> for Described<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Named> Visitor<'de> for Either<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "the name of a {0} that comes with qspin, or a table that describes a {0}",
                    T::KIND
                )
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<T, E> {
                T::named(name).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(Either(PhantomData)).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_has_a_name_is_possible() {
        for (name, _) in MACHINES {
            let machine = Machine::named(name).unwrap();
            assert_eq!(machine.check(), Ok(()), "{name}");
            assert!(!machine.source.is_empty(), "{name} says where its figures come from");
        }
        for (name, _) in HYPERVISORS {
            assert_eq!(Hypervisor::named(name).unwrap().check(), Ok(()), "{name}");
        }
        let files = |folder: &str| {
            let folder = format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"));
            std::fs::read_dir(folder).unwrap().count()
        };
        assert_eq!((files("machines"), files("hypervisors")), (MACHINES.len(), HYPERVISORS.len()));
    }
}
