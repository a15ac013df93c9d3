//! Result lines: one JSON object each.
//!
//! Numbers are written digit by digit, and nothing is written through `core::fmt`'s numbers: that code
//! is precompiled with SSE, and a hypervisor that executes a guest instruction by instruction (some
//! nested ones do) knows few of these.

use core::fmt::Write;

/// The digits of a number, the first one first.
fn digits(number: u64, out: &mut impl Write) {
    let mut unit = 1;
    while number / unit >= 10 {
        unit *= 10;
    }
    while unit > 0 {
        put(char::from(b'0' + (number / unit % 10) as u8), out);
        unit /= 10;
    }
}

/// There is nowhere to report a port that fails.
fn put(character: char, out: &mut impl Write) {
    let _ = out.write_char(character);
}

fn quote(text: &str, out: &mut impl Write) {
    put('"', out);
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                put('\\', out);
                put(character, out);
            }
            // No such character is part of any name here.
            '\0'..' ' => put(' ', out),
            _ => put(character, out),
        }
    }
    put('"', out);
}

/// An object that is being written.
pub struct Object<'a, W: Write> {
    out: &'a mut W,
    empty: bool,
}

impl<'a, W: Write> Object<'a, W> {
    /// Begins a line of this kind.
    #[must_use]
    pub fn line(out: &'a mut W, kind: &str) -> Self {
        Self::begin(out).text("guest", kind)
    }

    fn begin(out: &'a mut W) -> Self {
        put('{', out);
        Self { out, empty: true }
    }

    fn name(mut self, name: &str) -> Self {
        if !core::mem::replace(&mut self.empty, false) {
            put(',', self.out);
        }
        quote(name, self.out);
        put(':', self.out);
        self
    }

    /// A field that is text.
    #[must_use]
    pub fn text(self, name: &str, text: &str) -> Self {
        let this = self.name(name);
        quote(text, this.out);
        this
    }

    /// A field that is a number.
    #[must_use]
    pub fn number(self, name: &str, number: impl Into<u64>) -> Self {
        let this = self.name(name);
        digits(number.into(), this.out);
        this
    }

    /// A field that is true or false.
    #[must_use]
    pub fn flag(self, name: &str, flag: bool) -> Self {
        let this = self.name(name);
        let _ = this.out.write_str(if flag { "true" } else { "false" });
        this
    }

    /// A field that is a list of numbers.
    #[must_use]
    pub fn list(self, name: &str, numbers: impl Iterator<Item = u64>) -> Self {
        self.items(name, numbers, |number, out| digits(number, out))
    }

    /// A field that is a list of pairs.
    #[must_use]
    pub fn pairs(self, name: &str, pairs: impl Iterator<Item = (u64, u64)>) -> Self {
        self.items(name, pairs, |(one, other), out| {
            put('[', out);
            digits(one, out);
            put(',', out);
            digits(other, out);
            put(']', out);
        })
    }

    /// A field that is a list of objects.
    #[must_use]
    pub fn objects<T>(
        self,
        name: &str,
        items: impl Iterator<Item = T>,
        write: impl for<'b> Fn(T, Object<'b, W>) -> Object<'b, W>,
    ) -> Self {
        self.items(name, items, |item, out| write(item, Object::begin(out)).close())
    }

    /// A field that is an object of numbers.
    #[must_use]
    pub fn numbers<'n>(self, name: &str, numbers: impl Iterator<Item = (&'n str, u64)>) -> Self {
        let this = self.name(name);
        let mut inner = Object::begin(&mut *this.out);
        for (name, number) in numbers {
            inner = inner.number(name, number);
        }
        inner.close();
        this
    }

    fn items<T>(
        self,
        name: &str,
        items: impl Iterator<Item = T>,
        write: impl Fn(T, &mut W),
    ) -> Self {
        let this = self.name(name);
        put('[', this.out);
        for (index, item) in items.enumerate() {
            if index > 0 {
                put(',', this.out);
            }
            write(item, this.out);
        }
        put(']', this.out);
        this
    }

    fn close(self) {
        put('}', self.out);
    }

    /// Ends the line.
    pub fn end(self) {
        put('}', self.out);
        put('\n', self.out);
    }
}

#[cfg(test)]
mod tests {
    use std::string::String;

    use super::*;

    #[test]
    fn a_line_is_what_a_reader_of_json_expects() {
        let mut text = String::new();
        Object::line(&mut text, "x")
            .text("quoted", "a \"b\" \\ \n c")
            .number("least", 0_u64)
            .number("most", u64::MAX)
            .flag("yes", true)
            .list("none", core::iter::empty())
            .list("some", [1, 20].into_iter())
            .pairs("pairs", [(1, 2), (3, 4)].into_iter())
            .objects("things", [true, false].into_iter(), |yes, thing| {
                thing.text("a", "b").flag("c", yes)
            })
            .numbers("counts", [("d", 5), ("e", 6)].into_iter())
            .end();
        assert_eq!(
            text,
            "{\"guest\":\"x\",\"quoted\":\"a \\\"b\\\" \\\\   c\",\"least\":0,\
             \"most\":18446744073709551615,\"yes\":true,\"none\":[],\"some\":[1,20],\
             \"pairs\":[[1,2],[3,4]],\"things\":[{\"a\":\"b\",\"c\":true},\
             {\"a\":\"b\",\"c\":false}],\"counts\":{\"d\":5,\"e\":6}}\n"
        );
    }
}
