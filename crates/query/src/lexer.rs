//! Cuts query text into tokens. One pass, no allocation besides the token list.

use crate::ast::Span;
use crate::error::{QueryError, Result};
use crate::limits;
use crate::token::{Keyword, Kind, Symbol, Token, keyword};

/// All tokens of `text`, closed by one `End` token.
pub fn tokens(text: &str) -> Result<Vec<Token>> {
    if text.len() > limits::QUERY_BYTES {
        return Err(QueryError::bare(format!(
            "The query text exceeds the maximum length of {} bytes.",
            limits::QUERY_BYTES
        )));
    }
    let mut lexer = Lexer { bytes: text.as_bytes(), text, at: 0, comments_end: true };
    let mut list = Vec::with_capacity(text.len() / 4 + 1);
    loop {
        lexer.skip_blank();
        let start = lexer.at;
        let Some(&byte) = lexer.bytes.get(start) else {
            list.push(Token { kind: Kind::End, span: Span::new(start, start) });
            return Ok(list);
        };
        let kind = lexer.token(byte)?;
        list.push(Token { kind, span: Span::new(start, lexer.at) });
    }
}

struct Lexer<'t> {
    bytes: &'t [u8],
    text: &'t str,
    at: usize,
    /// Whether a `*/` may still follow, as far as is known.
    comments_end: bool,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// White space, `-- to the end of the line` and `/* block */` comments.
    fn skip_blank(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (b' ' | b'\t' | b'\r' | b'\n', _) => self.at += 1,
                (b'-', b'-') => {
                    while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
                        self.at += 1;
                    }
                }
                (b'/', b'*') if self.comments_end => {
                    let rest = &self.bytes[self.at + 2..];
                    match rest.windows(2).position(|pair| pair == b"*/") {
                        Some(close) => self.at += close + 4,
                        // A comment that never ends is no comment: the parser then refuses its first character.
                        // It is looked for once only, or many of them would take time that grows with their square.
                        None => self.comments_end = false,
                    }
                }
                _ => return,
            }
        }
    }

    fn token(&mut self, byte: u8) -> Result<Kind> {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Ok(self.word()),
            b'@' => self.parameter(),
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            b'"' | b'\'' => self.string(byte),
            _ => self.symbol(byte),
        }
    }

    fn word(&mut self) -> Kind {
        let start = self.at;
        while matches!(self.peek(0), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_') {
            self.at += 1;
        }
        keyword(&self.text[start..self.at]).map_or(Kind::Identifier, Kind::Keyword)
    }

    fn parameter(&mut self) -> Result<Kind> {
        let start = self.at;
        self.at += 1;
        if !matches!(self.peek(0), b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9') {
            return Err(self.bad_token(start));
        }
        self.word();
        Ok(Kind::Parameter)
    }

    fn number(&mut self) -> Result<Kind> {
        let start = self.at;
        if self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X') && self.peek(2).is_ascii_hexdigit() {
            self.at += 2;
            while self.peek(0).is_ascii_hexdigit() {
                self.at += 1;
            }
        } else {
            self.digits();
            if self.peek(0) == b'.' {
                self.at += 1;
                self.digits();
            }
            if matches!(self.peek(0), b'e' | b'E') {
                self.at += 1;
                if matches!(self.peek(0), b'+' | b'-') {
                    self.at += 1;
                }
                if !self.peek(0).is_ascii_digit() {
                    return Err(self.bad_number(start));
                }
                self.digits();
            }
        }
        if matches!(self.peek(0), b'a'..=b'z' | b'A'..=b'Z' | b'_') {
            return Err(self.bad_number(start));
        }
        Ok(Kind::Number)
    }

    fn digits(&mut self) {
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    fn string(&mut self, quote: u8) -> Result<Kind> {
        let start = self.at;
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'\\' => self.at += 2,
                byte => {
                    self.at += 1;
                    if byte == quote {
                        return Ok(Kind::String);
                    }
                }
            }
        }
        self.at = self.bytes.len();
        Err(QueryError::at(1010, Span::new(start, self.at), "Syntax error, invalid string literal token."))
    }

    fn symbol(&mut self, byte: u8) -> Result<Kind> {
        let (symbol, length) = match (byte, self.peek(1), self.peek(2)) {
            (b'(', ..) => (Symbol::LeftParen, 1),
            (b')', ..) => (Symbol::RightParen, 1),
            (b'[', ..) => (Symbol::LeftBracket, 1),
            (b']', ..) => (Symbol::RightBracket, 1),
            (b'{', ..) => (Symbol::LeftBrace, 1),
            (b'}', ..) => (Symbol::RightBrace, 1),
            (b',', ..) => (Symbol::Comma, 1),
            (b':', ..) => (Symbol::Colon, 1),
            (b'.', ..) => (Symbol::Dot, 1),
            (b'?', b'?', _) => (Symbol::Coalesce, 2),
            (b'?', ..) => (Symbol::Question, 1),
            (b'+', ..) => (Symbol::Plus, 1),
            (b'-', ..) => (Symbol::Minus, 1),
            (b'*', ..) => (Symbol::Star, 1),
            (b'/', ..) => (Symbol::Slash, 1),
            (b'%', ..) => (Symbol::Percent, 1),
            (b'~', ..) => (Symbol::Tilde, 1),
            (b'&', ..) => (Symbol::Ampersand, 1),
            (b'^', ..) => (Symbol::Caret, 1),
            (b'|', b'|', _) => (Symbol::Concat, 2),
            (b'|', ..) => (Symbol::Pipe, 1),
            (b'=', ..) => (Symbol::Equal, 1),
            (b'!', b'=', _) | (b'<', b'>', _) => (Symbol::NotEqual, 2),
            (b'<', b'<', _) => (Symbol::ShiftLeft, 2),
            (b'<', b'=', _) => (Symbol::LessOrEqual, 2),
            (b'<', ..) => (Symbol::Less, 1),
            (b'>', b'>', b'>') => (Symbol::ShiftRightZero, 3),
            (b'>', b'>', _) => (Symbol::ShiftRight, 2),
            (b'>', b'=', _) => (Symbol::GreaterOrEqual, 2),
            (b'>', ..) => (Symbol::Greater, 1),
            _ => return Err(self.bad_token(self.at)),
        };
        self.at += length;
        Ok(Kind::Symbol(symbol))
    }

    fn bad_token(&self, start: usize) -> QueryError {
        let length = self.text[start..].chars().next().map_or(0, char::len_utf8);
        let span = Span::new(start, start + length);
        QueryError::at(1001, span, format!("Syntax error, incorrect syntax near '{}'.", span.text(self.text)))
    }

    fn bad_number(&mut self, start: usize) -> QueryError {
        while matches!(self.peek(0), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_') {
            self.at += 1;
        }
        let span = Span::new(start, self.at);
        QueryError::at(
            1012,
            span,
            format!("Syntax error, invalid numeric value token '{}'.", span.text(self.text)),
        )
    }
}

/// The value of a string token, or the span of a bad escape sequence.
pub fn unescape(text: &str, span: Span) -> std::result::Result<String, Span> {
    let body = &text[span.start as usize + 1..span.end as usize - 1];
    if !body.contains('\\') {
        return Ok(body.to_owned());
    }
    let bad = |at: usize| {
        let start = span.start as usize + 1 + at;
        Span::new(start, (start + 2).min(text.len()))
    };
    let mut out = String::with_capacity(body.len());
    let mut rest = body.char_indices();
    while let Some((at, c)) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let (_, escape) = rest.next().ok_or_else(|| bad(at))?;
        match escape {
            '"' | '\'' | '\\' | '/' => out.push(escape),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                let high = hex4(body, at + 2).ok_or_else(|| bad(at))?;
                let low = (0xD800..0xDC00)
                    .contains(&high)
                    .then(|| {
                        body.get(at + 6..at + 8).filter(|s| *s == "\\u").and_then(|_| hex4(body, at + 8))
                    })
                    .flatten()
                    .filter(|low| (0xDC00..0xE000).contains(low));
                let digits = match low {
                    Some(low) => {
                        let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                        10
                    }
                    None => {
                        out.push(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER));
                        4
                    }
                };
                rest.nth(digits - 1);
            }
            _ => return Err(bad(at)),
        }
    }
    Ok(out)
}

fn hex4(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 4)?;
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

/// True when a token may stand where the grammar asks for a name.
pub fn is_name(kind: Kind) -> bool {
    match kind {
        Kind::Identifier => true,
        Kind::Keyword(word) => Keyword::usable_as_name(word),
        _ => false,
    }
}
