//! Writes the seeds of all fuzz targets below a folder: `seeds FOLDER`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use surfaces::seeds;

fn main() -> io::Result<()> {
    let Some(out) = env::args_os().nth(1).map(PathBuf::from) else {
        return Err(io::Error::other("a folder is missing: seeds FOLDER"));
    };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let seeds = seeds::all(&seeds::recordings(&fixtures)?)?;
    for seed in &seeds {
        let folder = out.join(seed.surface);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(&seed.name), &seed.bytes)?;
    }
    println!("{} seeds in {}", seeds.len(), out.display());
    Ok(())
}
