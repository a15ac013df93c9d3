//! What stands in a table: text or a number, and how a page shows it.

use crate::number::digits;

/// What one cell holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    /// For people; `None` is not known.
    pub(crate) text: Option<String>,
    /// The exact number, by which a page sorts and which CSV has.
    pub(crate) value: Option<f64>,
    /// Names in it stand between backticks.
    pub(crate) has_names: bool,
    /// What stands smaller behind the text.
    pub(crate) note: Option<String>,
    /// A word that stands out, and its class.
    pub(crate) badges: Vec<(String, &'static str)>,
    /// Where it leads to, within the page.
    pub(crate) link: Option<String>,
    /// What a pointer over it says.
    pub(crate) title: Option<String>,
    /// How strongly it is coloured, from 0 to 1.
    pub(crate) heat: Option<f64>,
}

impl Cell {
    /// A name, to be set as code.
    #[must_use]
    pub fn name(name: &str) -> Self {
        Self::with_names(format!("`{name}`"))
    }

    /// A sentence with names between backticks, which are to be set as code.
    #[must_use]
    pub fn with_names(text: String) -> Self {
        Self { has_names: true, ..Self::from(text) }
    }

    /// The same text, sorted by `value`.
    #[must_use]
    pub fn sorted_by(self, value: f64) -> Self {
        Self { value: Some(value), ..self }
    }

    /// With something smaller behind it.
    #[must_use]
    pub fn note(self, note: String) -> Self {
        Self { note: Some(note), ..self }
    }

    /// With a word that stands out, if there is one.
    #[must_use]
    pub fn badge(mut self, word: Option<&str>, class: &'static str) -> Self {
        self.badges.extend(word.map(|word| (word.to_owned(), class)));
        self
    }

    /// Leads to the part of the page with this name.
    #[must_use]
    pub fn link(self, id: &str) -> Self {
        Self { link: Some(id.to_owned()), ..self }
    }

    /// With what a pointer over it says.
    #[must_use]
    pub fn title(self, title: Option<String>) -> Self {
        Self { title, ..self }
    }

    /// Coloured as strongly as `heat` says, from 0 to 1.
    #[must_use]
    pub fn heat(self, heat: f64) -> Self {
        Self { heat: Some(heat), ..self }
    }

    /// What a person reads, in plain text.
    pub(crate) fn shown(&self) -> String {
        let mut text = self.text.clone().unwrap_or_else(|| "–".to_owned());
        for behind in self.note.iter().chain(self.badges.iter().map(|(word, _)| word)) {
            text += &format!(" ({behind})");
        }
        text
    }

    /// What a program reads.
    pub(crate) fn exact(&self) -> String {
        match (self.value, &self.text) {
            (Some(value), _) => value.to_string(),
            (None, text) => text.clone().unwrap_or_default(),
        }
    }
}

/// A number with so many decimals.
#[must_use]
pub fn fixed(value: f64, decimals: usize) -> Cell {
    Cell { value: Some(value), ..Cell::from(format!("{value:.decimals$}")) }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text: Some(text), ..Self::default() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        let text = if value.is_infinite() { "∞".to_owned() } else { digits(value) };
        Self { value: Some(value), ..Self::from(text) }
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Self::default, Into::into)
    }
}

macro_rules! whole_numbers {
    ($($kind:ty)*) => {$(
        impl From<$kind> for Cell {
            fn from(value: $kind) -> Self {
                value.to_string().into()
            }
        }
    )*};
}
whole_numbers!(u32 u64 usize bool);
