//! The values a PDF is made of, and reading them from bytes.

/// Deepest nesting of arrays and dictionaries.
const DEPTH_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    Null,
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(Vec<u8>),
    Name(Vec<u8>),
    Array(Vec<Object>),
    Dict(Dict),
    Ref(u32),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Dict(Vec<(Vec<u8>, Object)>);

impl Dict {
    pub(super) fn get(&self, key: &str) -> Option<&Object> {
        self.0.iter().find(|(name, _)| name == key.as_bytes()).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &Object)> {
        self.0.iter().map(|(name, value)| (name.as_slice(), value))
    }

    pub(super) fn insert_if_absent(&mut self, key: &[u8], value: Object) {
        if !self.0.iter().any(|(name, _)| name == key) {
            self.0.push((key.to_vec(), value));
        }
    }
}

impl Object {
    pub(super) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Real(value) => Some(*value as i64),
            _ => None,
        }
    }

    pub(super) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Real(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn as_name(&self) -> Option<&[u8]> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn as_dict(&self) -> Option<&Dict> {
        match self {
            Self::Dict(dict) => Some(dict),
            _ => None,
        }
    }
}

#[derive(Debug, PartialEq)]
pub(super) enum Token<'a> {
    Object(Object),
    ArrayOpens,
    ArrayCloses,
    DictOpens,
    DictCloses,
    Keyword(&'a [u8]),
}

pub(super) fn is_white(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 0x0C | b'\r' | b' ')
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

/// Reads tokens and objects from bytes.
pub(super) struct Lexer<'a> {
    pub(super) data: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0 }
    }

    pub(super) fn skip_white(&mut self) {
        while let Some(byte) = self.data.get(self.at) {
            if is_white(*byte) {
                self.at += 1;
            } else if *byte == b'%' {
                while self.data.get(self.at).is_some_and(|b| *b != b'\n' && *b != b'\r') {
                    self.at += 1;
                }
            } else {
                return;
            }
        }
    }

    pub(super) fn token(&mut self) -> Option<Token<'a>> {
        self.skip_white();
        let byte = *self.data.get(self.at)?;
        Some(match byte {
            b'[' => self.one(Token::ArrayOpens),
            b']' => self.one(Token::ArrayCloses),
            b'<' if self.data.get(self.at + 1) == Some(&b'<') => {
                self.at += 2;
                Token::DictOpens
            }
            b'>' if self.data.get(self.at + 1) == Some(&b'>') => {
                self.at += 2;
                Token::DictCloses
            }
            b'<' => Token::Object(Object::Text(self.hex())),
            b'(' => Token::Object(Object::Text(self.string())),
            b'/' => Token::Object(Object::Name(self.name())),
            b'0'..=b'9' | b'+' | b'-' | b'.' => self.number(),
            b'>' | b')' | b'{' | b'}' => {
                self.at += 1;
                Token::Keyword(&self.data[self.at - 1..self.at])
            }
            _ => {
                let from = self.at;
                while self.data.get(self.at).is_some_and(|b| !is_white(*b) && !is_delimiter(*b)) {
                    self.at += 1;
                }
                match &self.data[from..self.at] {
                    b"true" => Token::Object(Object::Bool(true)),
                    b"false" => Token::Object(Object::Bool(false)),
                    b"null" => Token::Object(Object::Null),
                    word => Token::Keyword(word),
                }
            }
        })
    }

    fn one(&mut self, token: Token<'a>) -> Token<'a> {
        self.at += 1;
        token
    }

    fn number(&mut self) -> Token<'a> {
        let from = self.at;
        let mut negative = false;
        while let Some(sign @ (b'+' | b'-')) = self.data.get(self.at) {
            negative |= *sign == b'-';
            self.at += 1;
        }
        let (mut whole, mut fraction, mut scale, mut dot, mut digits) = (0_f64, 0_f64, 1_f64, false, 0);
        while let Some(byte) = self.data.get(self.at) {
            match byte {
                b'0'..=b'9' => {
                    digits += 1;
                    let digit = f64::from(byte - b'0');
                    if dot {
                        scale /= 10.0;
                        fraction += digit * scale;
                    } else {
                        whole = whole * 10.0 + digit;
                    }
                }
                b'.' if !dot => dot = true,
                // Some writers put a sign inside a number; what follows it is noise.
                b'-' => {}
                _ => break,
            }
            self.at += 1;
        }
        if digits == 0 {
            // A lone sign or dot reads as zero; anything else is a keyword of some kind.
            while self.data.get(self.at).is_some_and(|b| !is_white(*b) && !is_delimiter(*b)) {
                self.at += 1;
            }
            if self.at - from > 1 {
                return Token::Keyword(&self.data[from..self.at]);
            }
            return Token::Object(Object::Int(0));
        }
        let value = if negative { -(whole + fraction) } else { whole + fraction };
        Token::Object(if dot || whole > 9e15 { Object::Real(value) } else { Object::Int(value as i64) })
    }

    fn name(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut name = Vec::new();
        while let Some(byte) = self.data.get(self.at).copied() {
            if is_white(byte) || is_delimiter(byte) {
                break;
            }
            let code = (byte == b'#').then(|| self.data.get(self.at + 1..self.at + 3)).flatten().and_then(hex_pair);
            match code {
                Some(code) => {
                    name.push(code);
                    self.at += 3;
                }
                None => {
                    name.push(byte);
                    self.at += 1;
                }
            }
        }
        name
    }

    fn hex(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut bytes = Vec::new();
        let mut half = None;
        while let Some(byte) = self.data.get(self.at).copied() {
            self.at += 1;
            if byte == b'>' {
                break;
            }
            let Some(digit) = (byte as char).to_digit(16).map(|d| d as u8) else { continue };
            half = match half {
                None => Some(digit << 4),
                Some(high) => {
                    bytes.push(high | digit);
                    None
                }
            };
        }
        bytes.extend(half);
        bytes
    }

    fn string(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut bytes = Vec::new();
        let mut depth = 1;
        while let Some(byte) = self.data.get(self.at).copied() {
            self.at += 1;
            match byte {
                b'(' => depth += 1,
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                b'\\' => {
                    if let Some(byte) = self.escape() {
                        bytes.push(byte);
                    }
                    continue;
                }
                _ => {}
            }
            bytes.push(byte);
        }
        bytes
    }

    fn escape(&mut self) -> Option<u8> {
        let byte = *self.data.get(self.at)?;
        self.at += 1;
        Some(match byte {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'f' => 12,
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.data.get(self.at) else { break };
                    code = code * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                code as u8
            }
            b'\r' => {
                if self.data.get(self.at) == Some(&b'\n') {
                    self.at += 1;
                }
                return None;
            }
            b'\n' => return None,
            other => other,
        })
    }

    /// The next object, with references. `None` at the end or where no object stands.
    pub(super) fn object(&mut self) -> Option<Object> {
        let token = self.token()?;
        self.object_from(token, 0)
    }

    pub(super) fn object_from(&mut self, token: Token<'a>, depth: usize) -> Option<Object> {
        if depth > DEPTH_MAX {
            return None;
        }
        match token {
            Token::Object(Object::Int(number)) => Some(self.reference(number).unwrap_or(Object::Int(number))),
            Token::Object(object) => Some(object),
            Token::ArrayOpens => {
                let mut items = Vec::new();
                loop {
                    match self.token()? {
                        Token::ArrayCloses => return Some(Object::Array(items)),
                        Token::Keyword(b"endobj" | b"obj") => return None,
                        Token::Keyword(_) | Token::DictCloses => {}
                        token => items.push(self.object_from(token, depth + 1)?),
                    }
                }
            }
            Token::DictOpens => {
                let mut dict = Dict::default();
                loop {
                    match self.token()? {
                        Token::DictCloses => return Some(Object::Dict(dict)),
                        Token::Object(Object::Name(name)) => {
                            let token = self.token()?;
                            if token == Token::DictCloses {
                                return Some(Object::Dict(dict));
                            }
                            if let Token::Keyword(word) = token {
                                if word == b"endobj" || word == b"stream" {
                                    return None;
                                }
                                continue;
                            }
                            let value = self.object_from(token, depth + 1)?;
                            dict.0.push((name, value));
                        }
                        Token::Keyword(b"endobj" | b"stream") => return None,
                        _ => {}
                    }
                }
            }
            Token::ArrayCloses | Token::DictCloses | Token::Keyword(_) => None,
        }
    }

    /// `number generation R`, the number already read.
    fn reference(&mut self, number: i64) -> Option<Object> {
        let number = u32::try_from(number).ok()?;
        let before = self.at;
        let found = self.data.get(self.at).is_some_and(|b| is_white(*b))
            && matches!(self.token(), Some(Token::Object(Object::Int(0..=65_535))))
            && self.token() == Some(Token::Keyword(b"R"));
        if found {
            return Some(Object::Ref(number));
        }
        self.at = before;
        None
    }
}

fn hex_pair(pair: &[u8]) -> Option<u8> {
    let high = (pair[0] as char).to_digit(16)?;
    let low = (pair[1] as char).to_digit(16)?;
    Some((high * 16 + low) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects() {
        let mut lexer = Lexer::new(b"<< /A#20B [1 -2.5 (a\\(b\\)\\101) <48 69> 3 0 R true null] /C << >> >> rest");
        let object = lexer.object().unwrap();
        let dict = object.as_dict().unwrap();
        assert_eq!(
            dict.get("A B").unwrap().as_array().unwrap(),
            [
                Object::Int(1),
                Object::Real(-2.5),
                Object::Text(b"a(b)A".to_vec()),
                Object::Text(b"Hi".to_vec()),
                Object::Ref(3),
                Object::Bool(true),
                Object::Null
            ]
        );
        assert_eq!(lexer.token(), Some(Token::Keyword(b"rest")));
    }

    #[test]
    fn endless_nesting_is_refused() {
        assert_eq!(Lexer::new("[".repeat(100_000).as_bytes()).object(), None);
        assert_eq!(Lexer::new("<</a".repeat(100_000).as_bytes()).object(), None);
    }
}
