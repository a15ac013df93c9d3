//! What accesses to ports do: a serial port that is always ready, the exit port, the bell.

use qspin_guest::options::{BELL_PORT, EXIT_PORT};

/// COM1: eight registers.
const SERIAL: u16 = 0x3f8;
const SERIAL_END: u16 = SERIAL + 7;
const LINE_CONTROL: u16 = SERIAL + 3;
const LINE_STATUS: u16 = SERIAL + 5;
/// In the line control: the first two registers are the divisor.
const DIVISOR: u8 = 0x80;
/// In the line status: everything was sent, and there is room.
const READY: u8 = 0x60;
/// The keyboard controller, and what resets the machine there.
const KEYBOARD: u16 = 0x64;
const RESET: u8 = 0xfe;
/// A line that is longer is none of our guest's.
const LONGEST: usize = 1 << 20;

/// What a write to a port means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Nothing to be told.
    Nothing,
    /// A line is complete.
    Line(String),
    /// The guest ends, with this code.
    Exit(u32),
    /// The guest resets the machine.
    Reset,
    /// The bell.
    Bell,
}

/// The ports' state.
#[derive(Debug, Default)]
pub struct Ports {
    line: Vec<u8>,
    line_control: u8,
}

impl Ports {
    /// The guest writes `data` to `port`.
    pub fn write(&mut self, port: u16, data: &[u8]) -> Effect {
        let first = data.first().copied().unwrap_or(0);
        match port {
            SERIAL if self.line_control & DIVISOR == 0 => {
                data.iter().map(|byte| self.send(*byte)).last().unwrap_or(Effect::Nothing)
            }
            LINE_CONTROL => {
                self.line_control = first;
                Effect::Nothing
            }
            EXIT_PORT => {
                let mut code = [0; 4];
                code.iter_mut().zip(data).for_each(|(to, from)| *to = *from);
                Effect::Exit(u32::from_le_bytes(code))
            }
            KEYBOARD if first == RESET => Effect::Reset,
            BELL_PORT => Effect::Bell,
            _ => Effect::Nothing,
        }
    }

    fn send(&mut self, byte: u8) -> Effect {
        if byte == b'\n' || self.line.len() >= LONGEST {
            return Effect::Line(String::from_utf8_lossy(&std::mem::take(&mut self.line)).into());
        }
        self.line.push(byte);
        Effect::Nothing
    }

    /// The guest reads from `port`. Where nothing is, all bits are set.
    pub fn read(&self, port: u16, data: &mut [u8]) {
        data.fill(match port {
            LINE_STATUS => READY,
            LINE_CONTROL => self.line_control,
            SERIAL..=SERIAL_END => 0,
            _ => 0xff,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_lines_and_a_divisor_is_none() {
        let mut ports = Ports::default();
        for (port, byte) in [(LINE_CONTROL, 0x80), (SERIAL, b'x'), (LINE_CONTROL, 3)] {
            assert_eq!(ports.write(port, &[byte]), Effect::Nothing);
        }
        let effects: Vec<_> = b"ab\n\n".iter().map(|byte| ports.write(SERIAL, &[*byte])).collect();
        let line = |text: &str| Effect::Line(text.to_owned());
        assert_eq!(effects, [Effect::Nothing, Effect::Nothing, line("ab"), line("")]);
    }

    #[test]
    fn the_guest_finds_a_port_that_is_ready() {
        let ports = Ports::default();
        let read = |port| {
            let mut data = [1; 2];
            ports.read(port, &mut data);
            data
        };
        assert_eq!((read(LINE_STATUS), read(SERIAL), read(0x60)), ([0x60; 2], [0; 2], [0xff; 2]));
    }

    #[test]
    fn it_ends_resets_and_rings() {
        let mut ports = Ports::default();
        assert_eq!(ports.write(EXIT_PORT, &0x10_u32.to_le_bytes()), Effect::Exit(0x10));
        assert_eq!(ports.write(EXIT_PORT, &[5]), Effect::Exit(5), "a byte of it");
        assert_eq!(ports.write(KEYBOARD, &[RESET]), Effect::Reset);
        assert_eq!(ports.write(KEYBOARD, &[1]), Effect::Nothing);
        assert_eq!(ports.write(BELL_PORT, &[0]), Effect::Bell);
        assert_eq!(ports.write(0x21, &[0xff]), Effect::Nothing, "a device that is not there");
        assert_eq!(ports.write(SERIAL, &[]), Effect::Nothing);
    }
}
