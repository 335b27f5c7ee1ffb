//! The words of the language.

use crate::ast::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Identifier,
    Parameter,
    Number,
    String,
    Keyword(Keyword),
    Symbol(Symbol),
    End,
}

macro_rules! keywords {
    ($($name:ident $text:literal),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Keyword { $($name),* }

        /// All keywords, for those who offer them to people.
        pub fn keywords() -> &'static [&'static str] {
            &[$($text),*]
        }

        /// Finds a keyword in any letter case. The constants and `udf` are compared exactly, as by the
        /// service.
        pub fn keyword(text: &str) -> Option<Keyword> {
            $(if text.eq_ignore_ascii_case($text) {
                let exact = matches!($text, "true" | "false" | "null" | "undefined" | "NaN" | "Infinity" | "udf");
                return (!exact || text == $text).then_some(Keyword::$name);
            })*
            None
        }
    };
}

keywords! {
    All "all", And "and", Array "array", As "as", Asc "asc", Between "between", By "by", Desc "desc",
    Distinct "distinct", Escape "escape", Exists "exists", False "false", First "first", From "from",
    Group "group", In "in", Infinity "Infinity", Join "join", Last "last", Left "left", Like "like",
    Limit "limit", NaN "NaN", Not "not", Null "null", Offset "offset", Or "or", Order "order", Rank "rank", Right "right", Select "select",
    Top "top", True "true", Udf "udf", Undefined "undefined", Value "value", Where "where",
}

impl Keyword {
    /// Words that mean something only in one place and are names everywhere else.
    pub fn usable_as_name(self) -> bool {
        matches!(
            self,
            Self::All
                | Self::First
                | Self::Last
                | Self::Left
                | Self::Right
                | Self::Rank
                | Self::Escape
                | Self::Infinity
                | Self::NaN
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbol {
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Comma,
    Colon,
    Dot,
    Question,
    Coalesce,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Tilde,
    Ampersand,
    Caret,
    Pipe,
    Concat,
    ShiftLeft,
    ShiftRight,
    ShiftRightZero,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}
