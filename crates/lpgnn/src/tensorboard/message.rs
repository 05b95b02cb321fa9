/// A message of protocol buffers in its wire format, field by field.
///
/// A field is its number and the type of what follows, as one integer, and then that: an integer of 7 bits per byte, 8
/// bytes, 4 bytes, or a length and so many bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn integer(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    pub(super) fn double(mut self, field: u64, value: f64) -> Self {
        self.varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn float(mut self, field: u64, value: f32) -> Self {
        self.varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    pub(super) fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(super) fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    /// Repeated, and packed.
    pub(super) fn doubles(self, field: u64, values: impl Iterator<Item = f64>) -> Self {
        self.bytes(field, &values.flat_map(f64::to_le_bytes).collect::<Vec<u8>>())
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The lowest bits first; the highest bit of a byte tells that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(0x80 | value.to_le_bytes()[0]);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_wire_format() {
        // The examples of the format's own description.
        assert_eq!(Message::default().integer(1, 150).as_bytes(), [0x08, 0x96, 0x01]);
        let text = Message::default().text(2, "testing");
        assert_eq!(text.as_bytes(), b"\x12\x07testing");
        let inner = Message::default().integer(1, 150);
        let outer = Message::default().message(3, &inner);
        assert_eq!(outer.as_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let doubles = Message::default().doubles(6, [1.0].into_iter());
        assert_eq!(doubles.as_bytes(), [0x32, 8, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        assert_eq!(Message::default().float(2, 1.0).as_bytes(), [0x15, 0, 0, 0x80, 0x3f]);
        let most = Message::default().integer(1, u64::MAX);
        assert_eq!(most.as_bytes().len(), 11);
    }
}
