//! First come, first served.

use super::Order;

/// The order of arrival; the defaults of [`Order`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Fifo;

impl Order for Fifo {}
