//! Names of addresses: in which function of which file of a process, on which line of its source; and which variable
//! lies there.
//!
//! All of it is looked up here, in the files that the process had in its memory, and none of it in the process. Lines and
//! inlined functions come from debug information: the file's own, or a separate one that is found by the file's build
//! id or by the name that it gives (`/usr/lib/debug`, as Debian installs it).

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::read::ReadCache;
use object::{Object, ObjectSegment, ObjectSymbol, ReadRef, SymbolKind};

use super::report;
use crate::command::proc;

/// What lay where in the memory of processes, by the slots that they write to: a process that executes
/// another program has another map and another slot.
#[derive(Debug, Default)]
pub(super) struct Maps(BTreeMap<u64, String>);

impl Maps {
    /// Keeps a process's map of memory, if it is there and is that of one that counts.
    pub(super) fn look_at(&mut self, process: u32) {
        let Some(text) = proc::map(process) else { return };
        for slot in report::slots_in(&text) {
            self.0.insert(slot, text.clone());
        }
    }

    pub(super) fn of(&self, slot: u64) -> &str {
        self.0.get(&slot).map_or("", String::as_str)
    }
}

/// A function, perhaps one that was inlined into the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// As the source has it; an address within the file where no name is known.
    pub(super) function: String,
    /// The file of the process's memory that it is in, without directories.
    pub(super) object: String,
    /// Where it goes on in the source.
    pub(super) line: Option<(String, u32)>,
}

impl Frame {
    /// `function in file`, or `function (source:line)`.
    pub(super) fn text(&self) -> String {
        match &self.line {
            Some((file, line)) => {
                let file = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
                format!("{} ({file}:{line})", self.function)
            }
            None if self.object.is_empty() || self.function.contains("+0x") => {
                self.function.clone()
            }
            None => format!("{} in {}", self.function, self.object),
        }
    }

    /// Whether its function is known, and not only its address.
    fn has_name(&self) -> bool {
        !self.object.is_empty() && !self.function.contains("+0x")
    }

    /// Whether it only hands a call on to a function that locks: its caller is what people look for.
    pub(super) fn only_hands_on(&self) -> bool {
        const BEGINNINGS: [&str; 30] = [
            "__gthread_",
            "__gthrw_",
            "std::mutex::",
            "std::timed_mutex::",
            "std::recursive_mutex::",
            "std::__recursive_mutex",
            "std::__mutex_base",
            "std::__timed_mutex_impl",
            "std::lock_guard<",
            "std::unique_lock<",
            "std::scoped_lock<",
            "std::shared_lock<",
            "std::shared_mutex::",
            "std::shared_timed_mutex::",
            "std::__shared_mutex_pthread::",
            "std::__shared_timed_mutex_base::",
            "std::__glibcxx_rwlock",
            "std::condition_variable::",
            "std::lock<",
            "std::__detail::__try_lock",
            "std::__detail::__lock_impl",
            "std::thread::join",
            "qspin::",
            "qspin_core::",
            "lock_api::",
            "<qspin::",
            "<qspin_core::",
            "<lock_api::",
            "core::ptr::drop_in_place<lock_api::",
            "core::mem::drop",
        ];
        if BEGINNINGS.iter().any(|beginning| self.function.starts_with(beginning)) {
            return true;
        }
        // Classes of other libraries: a method that is called as what it does, or the end of a guard.
        let Some((_, method)) = self.function.rsplit_once("::") else { return false };
        let method = method.to_lowercase();
        let words = ["lock", "mutex", "guard"];
        let ends_a_guard =
            method.starts_with('~') && words.iter().any(|word| method.contains(word));
        let plain = method.replace('_', "");
        let does = ["read", "write", "reader", "writer", "shared", "try", ""];
        let is_named = ["lock", "unlock", "acquire", "release"].iter().any(|what| {
            does.iter()
                .any(|how| plain == format!("{what}{how}") || plain == format!("{how}{what}"))
        });
        ends_a_guard || is_named
    }
}

/// The symbols of one kind, by where they begin; their names as the file has them, since a library has tens of
/// thousands, of which a report names a few.
type Symbols = BTreeMap<u64, (u64, String)>;

/// A file of a process's memory.
struct Module {
    name: String,
    path: PathBuf,
    /// What is to be added to an address of the file.
    base: u64,
    /// Where it lies.
    range: Range<u64>,
    /// Read when the first name is looked up in it.
    names: OnceCell<Tables>,
}

/// What a file knows of its addresses.
#[derive(Default)]
struct Tables {
    functions: Symbols,
    variables: Symbols,
    lines: Option<Loader>,
}

impl Module {
    fn names(&self) -> &Tables {
        self.names.get_or_init(|| tables(&self.path).unwrap_or_default())
    }
}

/// Finds names in the files that a process had in its memory.
pub(super) struct Names {
    modules: Vec<Module>,
    known: BTreeMap<u64, Vec<Frame>>,
}

impl Names {
    pub(super) fn of(map: &str) -> Self {
        let mut modules: Vec<Module> = Vec::new();
        let mut seen = Vec::new();
        for line in map.lines() {
            if let Some((start, offset, path)) = mapping(line)
                && !seen.contains(&path)
            {
                seen.push(path);
                modules.extend(module(Path::new(path), start, offset));
            }
        }
        Self { modules, known: BTreeMap::new() }
    }

    /// What the call that returns to `address` is in, the innermost function first.
    pub(super) fn frames(&mut self, address: u64) -> &[Frame] {
        let modules = &self.modules;
        // A return address: the call is before it.
        self.known.entry(address).or_insert_with(|| frames(modules, address.wrapping_sub(1)))
    }

    /// The function that is shown of a stack.
    pub(super) fn place(&mut self, stack: &[u64]) -> Option<Frame> {
        let all: Vec<Frame> =
            stack.iter().flat_map(|address| self.frames(*address).to_vec()).collect();
        shown_of(&all).cloned()
    }

    /// The variable that lies at `address`, with what is added to it.
    pub(super) fn variable(&self, address: u64) -> Option<String> {
        let module = self.modules.iter().find(|module| module.range.contains(&address))?;
        let place = address - module.base;
        let (begin, (size, name)) = module.names().variables.range(..=place).next_back()?;
        let within = place - begin;
        (within < (*size).max(1)).then(|| match within {
            0 => readable(name),
            within => format!("{}+{within:#x}", readable(name)),
        })
    }
}

/// The first function that does more than hand the call on; if that one has no name, since its file was stripped, the
/// first in the same file that has one: what is exported.
fn shown_of(stack: &[Frame]) -> Option<&Frame> {
    let mut own = stack.iter().skip_while(|frame| frame.only_hands_on());
    let Some(first) = own.next() else { return stack.first() };
    if first.has_name() {
        return Some(first);
    }
    let named = own.take_while(|frame| frame.object == first.object).find(|frame| frame.has_name());
    Some(named.unwrap_or(first))
}

/// Start, offset in the file and path of a line of a map, if it is of a file.
fn mapping(line: &str) -> Option<(u64, u64, &str)> {
    let mut fields = line.splitn(6, ' ');
    let (start, _) = fields.next()?.split_once('-')?;
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    let offset = hexadecimal(fields.nth(1)?)?;
    let path = fields.nth(2)?.trim();
    (path.starts_with('/') && !path.starts_with("/memfd:")).then_some((
        hexadecimal(start)?,
        offset,
        path,
    ))
}

fn frames(modules: &[Module], place: u64) -> Vec<Frame> {
    let Some(module) = modules.iter().find(|module| module.range.contains(&place)) else {
        return vec![Frame { function: format!("{place:#x}"), object: String::new(), line: None }];
    };
    let probe = place - module.base;
    let names = module.names();
    let symbol = names
        .functions
        .range(..=probe)
        .next_back()
        .filter(|(begin, (size, _))| probe < *begin + (*size).max(1))
        .map_or_else(|| format!("{}+{probe:#x}", module.name), |(_, (_, name))| readable(name));
    let mut all = Vec::new();
    if let Some(mut inlined) = names.lines.as_ref().and_then(|lines| lines.find_frames(probe).ok())
    {
        while let Ok(Some(frame)) = inlined.next() {
            let name =
                frame.function.as_ref().and_then(|name| Some(readable(&name.raw_name().ok()?)));
            let line = frame.location.and_then(|place| Some((place.file?.to_owned(), place.line?)));
            if name.is_some() || line.is_some() {
                let function = name.unwrap_or_else(|| symbol.clone());
                all.push(Frame { function, object: module.name.clone(), line });
            }
        }
    }
    if all.is_empty() {
        all.push(Frame { function: symbol, object: module.name.clone(), line: None });
    }
    all
}

/// Where the debug information of a file may lie beside the file itself.
fn separate(path: &Path, file: &object::File<'_>) -> Vec<PathBuf> {
    const DEBUG: &str = "/usr/lib/debug";
    let mut places = Vec::new();
    if let Ok(Some(id)) = file.build_id()
        && let Some((first, rest)) = id.split_first()
    {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        places.push(format!("{DEBUG}/.build-id/{first:02x}/{rest}.debug").into());
    }
    if let Ok(Some((name, _))) = file.gnu_debuglink() {
        let name = String::from_utf8_lossy(name).into_owned();
        let beside = path.parent().unwrap_or(Path::new("/"));
        let below = beside.strip_prefix("/").unwrap_or(beside);
        places.extend([
            beside.join(&name),
            beside.join(".debug").join(&name),
            Path::new(DEBUG).join(below).join(&name),
        ]);
    }
    places
}

fn symbols_of(file: &object::File<'_>, functions: &mut Symbols, variables: &mut Symbols) {
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let to = match symbol.kind() {
            SymbolKind::Text => &mut *functions,
            SymbolKind::Data => &mut *variables,
            _ => continue,
        };
        if symbol.is_definition()
            && let Ok(name) = symbol.name()
        {
            to.insert(symbol.address(), (symbol.size(), name.to_owned()));
        }
    }
}

/// A file that lies in memory from `start` on with what stands in it from `offset` on. Its headers alone are read.
fn module(path: &Path, start: u64, offset: u64) -> Option<Module> {
    let cache = ReadCache::new(fs::File::open(path).ok()?);
    let (base, ends) = place_of(&object::File::parse(&cache).ok()?, start, offset)?;
    Some(Module {
        name: path.file_name()?.to_string_lossy().into_owned(),
        path: path.to_owned(),
        base,
        range: start..base.wrapping_add(ends),
        names: OnceCell::new(),
    })
}

/// What is to be added to an address of the file, and the file's last address.
fn place_of<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    start: u64,
    offset: u64,
) -> Option<(u64, u64)> {
    let mut ends = 0;
    let mut base = None;
    for segment in file.segments() {
        let (at, size) = segment.file_range();
        // A mapping begins with the page that the segment begins in.
        if base.is_none() && (at & !0xfff..at + size.max(1)).contains(&offset) {
            base =
                Some(start.wrapping_sub(offset).wrapping_add(at).wrapping_sub(segment.address()));
        }
        ends = ends.max(segment.address() + segment.size());
    }
    Some((base?, ends))
}

/// The names of a file and, if there is one, of its separate debug information.
fn tables(path: &Path) -> Option<Tables> {
    let bytes = fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let mut tables = Tables::default();
    symbols_of(&file, &mut tables.functions, &mut tables.variables);
    for separate in separate(path, &file) {
        if let Ok(bytes) = fs::read(&separate)
            && let Ok(file) = object::File::parse(&*bytes)
        {
            symbols_of(&file, &mut tables.functions, &mut tables.variables);
            tables.lines = Loader::new(&separate).ok();
            break;
        }
    }
    tables.lines = tables.lines.or_else(|| Loader::new(path).ok());
    Some(tables)
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

    #[test]
    fn the_caller_of_a_wrapper_is_what_is_shown() {
        let frame =
            |function: &str| Frame { function: function.into(), object: "x".into(), line: None };
        for wrapper in
            ["__gthread_mutex_lock", "std::mutex::lock", "std::lock_guard<std::mutex>::lock_guard"]
        {
            assert!(frame(wrapper).only_hands_on(), "{wrapper}");
        }
        for wrapper in [
            "kyotocabinet::RWLock::lock_writer",
            "kyotocabinet::Mutex::unlock",
            "kyotocabinet::ScopedMutex::~ScopedMutex",
            "rocksdb::port::RWMutex::ReadLock",
            "rocksdb::port::Mutex::Lock",
            "<qspin::profile::file::Slot as qspin_core::observer::Observer>::waits",
            "lock_api::mutex::Mutex<R,T>::lock",
            "<lock_api::mutex::MutexGuard<R,T> as core::ops::drop::Drop>::drop",
        ] {
            assert!(frame(wrapper).only_hands_on(), "{wrapper}");
        }
        for own in [
            "f",
            "main",
            "lock",
            "std::sort",
            "std::mutexes::f",
            "Db::lock_table",
            "Db::~Db",
            "Db::writes",
        ] {
            assert!(!frame(own).only_hands_on(), "{own}");
        }
        let shown = |names: &[&str]| -> String {
            let stack: Vec<_> = names.iter().map(|name| frame(name)).collect();
            shown_of(&stack).unwrap().function.clone()
        };
        assert_eq!(shown(&["std::mutex::lock", "x+0x12", "f", "main"]), "f");
        assert_eq!(shown(&["x+0x12", "x+0x34"]), "x+0x12");
        assert_eq!(shown(&["std::mutex::lock"]), "std::mutex::lock");
        assert_eq!(Frame { line: Some(("/a/b.c".into(), 7)), ..frame("f") }.text(), "f (b.c:7)");
        assert_eq!(frame("f").text(), "f in x");
    }
}
