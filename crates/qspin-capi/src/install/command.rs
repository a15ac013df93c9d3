//! The command `qspin`, and the library that `qspin run` preloads into programs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::arguments::Origin;
use crate::library::{cargo, run, target};
use crate::tree::{Content, Tree};

/// Where the command looks for its library, relative to itself: whatever directory other libraries have.
const PRELOAD: &str = "lib/qspin/libqspin_preload.so";

/// Builds both, unless they are built already, and says where they belong.
pub(crate) fn built(origin: &Origin) -> Result<Tree, String> {
    let directory = match origin {
        Origin::Built(directory) => directory.clone(),
        Origin::Profile(profile) => {
            let target = target()?;
            let mut cargo = cargo("build", &target);
            cargo.args(["--package", "qspin-lab", "--package", "qspin-preload"]);
            run(cargo.args(["--profile", profile]))?;
            target.join(directory_of(profile))
        }
    };
    let file = |name: &str| {
        let path = directory.join(name);
        let bytes =
            fs::read(&path).map_err(|why| format!("cannot read {}: {why}", path.display()))?;
        Ok::<_, String>(Content::File(bytes, true))
    };
    let mut tree: Tree = vec![(PathBuf::from("bin/qspin"), file("qspin")?)];
    // Elsewhere there is nothing to interpose.
    if cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        tree.push((PathBuf::from(PRELOAD), file("libqspin_preload.so")?));
    }
    Ok(tree)
}

/// The directory into which cargo builds with a profile.
fn directory_of(profile: &str) -> &Path {
    Path::new(match profile {
        "dev" | "test" => "debug",
        "bench" => "release",
        other => other,
    })
}
