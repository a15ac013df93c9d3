//! Names of addresses: in which function of which file of a process.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use object::{Object, ObjectSegment, ObjectSymbol};

use super::report;
use crate::command::proc;

/// What lay where in the memory of processes, by the slots that they write to: a process that executes
/// another program has another map and another slot.
#[derive(Debug, Default)]
pub(super) struct Maps(BTreeMap<u64, String>);

impl Maps {
    /// Keeps a process's map of memory, if it is there and is that of one that counts.
    pub(super) fn look_at(&mut self, process: u32) {
        let Some(text) = proc::text(process, "maps") else { return };
        if let Some(slot) = report::slot_in(&text) {
            self.0.insert(slot, text);
        }
    }

    pub(super) fn of(&self, slot: u64) -> &str {
        self.0.get(&slot).map_or("", String::as_str)
    }
}

/// The functions of a file, by where they begin.
type Functions = BTreeMap<u64, (u64, String)>;

/// The segments of a file: where in the file, how long, at which address.
type Segments = Vec<(u64, u64, u64)>;

/// Finds names in the files that a process had in its memory.
pub(super) struct Names<'a> {
    map: &'a str,
    files: BTreeMap<String, Option<(Functions, Segments)>>,
}

impl<'a> Names<'a> {
    pub(super) fn of(map: &'a str) -> Self {
        Self { map, files: BTreeMap::new() }
    }

    /// What is at `address`: `function in file`, or as much of that as is known.
    pub(super) fn at(&mut self, address: u64) -> String {
        // A return address: the call is before it.
        let Some((path, offset)) = self.place(address.wrapping_sub(1)) else {
            return format!("{address:#x}");
        };
        let file = Path::new(&path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let known = self.files.entry(path.clone()).or_insert_with(|| functions(Path::new(&path)));
        let within = known.as_ref().and_then(|(functions, segments)| {
            let segment = segments
                .iter()
                .find(|(start, size, _)| (*start..start + size).contains(&offset))?;
            let place = offset - segment.0 + segment.2;
            let (begin, (size, name)) = functions.range(..=place).next_back()?;
            (place < begin + (*size).max(1)).then(|| name.clone())
        });
        match within {
            Some(name) => format!("{name} in {file}"),
            None => format!("{file}+{offset:#x}"),
        }
    }

    /// In which file, and where in it.
    fn place(&self, address: u64) -> Option<(String, u64)> {
        self.map.lines().find_map(|line| {
            let mut fields = line.splitn(6, ' ');
            let (start, end) = fields.next()?.split_once('-')?;
            let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
            let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
            if !(start..end).contains(&address) {
                return None;
            }
            let offset = hexadecimal(fields.nth(1)?)?;
            let path = fields.nth(2)?.trim();
            path.starts_with('/').then(|| (path.to_owned(), address - start + offset))
        })
    }
}

/// The functions of an ELF file, and its segments.
fn functions(path: &Path) -> Option<(Functions, Segments)> {
    let bytes = fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let mut functions = Functions::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if symbol.kind() == object::SymbolKind::Text
            && symbol.is_definition()
            && let Ok(name) = symbol.name()
        {
            functions.insert(symbol.address(), (symbol.size(), readable(name)));
        }
    }
    let segments = file
        .segments()
        .map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        })
        .collect();
    Some((functions, segments))
}

/// As the program's source has it, without the arguments.
fn readable(name: &str) -> String {
    // A function `f` of C is no type, `float`.
    if !name.starts_with("_Z") && !name.starts_with("_R") {
        return name.to_owned();
    }
    let rust = rustc_demangle::try_demangle(name).ok().map(|name| format!("{name:#}"));
    let plain = || {
        let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
        cpp_demangle::Symbol::new(name).ok()?.demangle_with_options(&options).ok()
    };
    rust.or_else(plain).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_are_mangled_are_read_as_such() {
        for plain in ["f", "i", "main", "__libc_start_main", "Z1fv", "_", "_start"] {
            assert_eq!(readable(plain), plain);
        }
        assert_eq!(readable("_Z1fi"), "f");
        assert_eq!(
            readable("_ZN4core3fmt5Write9write_str17h0123456789abcdefE"),
            "core::fmt::Write::write_str"
        );
        assert_eq!(readable("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(readable("_Z"), "_Z");
    }
}
