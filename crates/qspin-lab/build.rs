//! Builds a thin shim around each C and C++ peer, where the feature `peers-c` asks for them. A
//! library that is not installed is left out; the program names it when it is asked for.

fn main() {
    for cfg in ["has_tbb", "has_absl", "has_nsync", "has_ck"] {
        println!("cargo::rustc-check-cfg=cfg({cfg})");
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=shim");
    #[cfg(feature = "peers-c")]
    c_peers::build();
}

#[cfg(feature = "peers-c")]
mod c_peers {
    /// A library.
    struct Library {
        /// The configuration that its presence switches on.
        cfg: &'static str,
        /// Its name in pkg-config.
        package: &'static str,
        /// The shim, which includes its headers.
        shim: &'static str,
        /// What to link where pkg-config does not know it.
        link: Option<&'static str>,
    }

    const LIBRARIES: [Library; 4] = [
        Library { cfg: "has_tbb", package: "tbb", shim: "shim/tbb.cc", link: Some("tbb") },
        Library {
            cfg: "has_absl",
            package: "absl_synchronization",
            shim: "shim/absl.cc",
            link: Some("absl_synchronization"),
        },
        Library { cfg: "has_nsync", package: "nsync", shim: "shim/nsync.c", link: Some("nsync") },
        // Its spinlocks are inline functions, all in the shim.
        Library { cfg: "has_ck", package: "ck", shim: "shim/ck.c", link: None },
    ];

    pub(super) fn build() {
        for library in &LIBRARIES {
            if build_shim(library) {
                println!("cargo::rustc-cfg={}", library.cfg);
            }
        }
    }

    /// Builds the shim of a library and links both; says whether the library is there.
    fn build_shim(library: &Library) -> bool {
        let mut quiet = pkg_config::Config::new();
        let found = quiet.cargo_metadata(false).env_metadata(false).probe(library.package);
        let mut shim = cc::Build::new();
        shim.file(library.shim).include("shim").opt_level(2).cargo_warnings(false);
        if library.shim.ends_with(".cc") {
            shim.cpp(true).std("c++17");
        }
        for path in found.iter().flat_map(|found| &found.include_paths) {
            shim.include(path);
        }
        // Without its headers it does not compile.
        if shim.try_compile(&format!("qspin_{}", library.cfg)).is_err() {
            return false;
        }
        // After the shim: what is linked must follow what needs it.
        if pkg_config::Config::new().probe(library.package).is_err()
            && let Some(link) = library.link
        {
            println!("cargo::rustc-link-lib={link}");
        }
        true
    }
}
