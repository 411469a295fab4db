//! Digit alphabets: base 27 of the `ibip` form (RTC-10-I, Table 7.6), base 53 of legacy suffixes.

/// Table 7.6: without 0, O, 1, I, V, Y, Z; W and X are separators, not digits.
const BASE_27: &[u8; 27] = b"23456789ABCDEFGHJKLMNPQRSTU";

/// Classes of bytes in an `ibip`: a digit below 27, or one of these.
pub(crate) const W: u8 = 27;
pub(crate) const X: u8 = 28;
const NOT_IBIP: u8 = 255;

const BYTE_MEANINGS: [u8; 256] = {
    let mut table = values(BASE_27);
    table[b'W' as usize] = W;
    table[b'X' as usize] = X;
    // Either case (1.2).
    let mut c = b'A';
    while c <= b'Z' {
        table[c.to_ascii_lowercase() as usize] = table[c as usize];
        c += 1;
    }
    table
};

/// The class of a byte: a digit value, [`W`], [`X`] or greater.
#[inline]
pub(crate) const fn meaning(byte: u8) -> u8 {
    BYTE_MEANINGS[byte as usize]
}

/// Whether an `ibip` may have this byte.
pub(crate) const fn is_ibip(byte: u8) -> bool {
    meaning(byte) <= X
}

const fn values<const N: usize>(digits: &[u8; N]) -> [u8; 256] {
    let mut table = [NOT_IBIP; 256];
    let mut i = 0;
    while i < N {
        table[digits[i] as usize] = i as u8;
        i += 1;
    }
    table
}

/// Two digits at a time, the first in the high byte, to halve the divisions.
const DIGIT_PAIRS: [u16; 729] = {
    let mut pairs = [0; 729];
    let mut i = 0;
    while i < 729 {
        pairs[i] = u16::from_be_bytes([BASE_27[i / 27], BASE_27[i % 27]]);
        i += 1;
    }
    pairs
};

/// Writes a number in base 27 at the end of `buffer`, without leading zeros (zero is `2`). Returns
/// where it begins.
pub(crate) fn encode_27(mut number: u64, buffer: &mut [u8; 14]) -> usize {
    // 27^14 > 2^64: every u64 fits.
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = BASE_27[(number % 27) as usize];
        number /= 27;
        if number == 0 {
            return start;
        }
    }
}

/// Like [`encode_27`] for a number below 27^8, without a loop: the digits at the start of eight
/// bytes, and their number.
#[inline]
pub(crate) fn encode_27_short(number: u64) -> ([u8; 8], usize) {
    // number / 27^6 as a 54-bit fixed-point number, rounded up: its integer part is the first pair
    // of digits, and each multiplication by 27^2 yields the next. This is exact: the error, below
    // 2^-53, grows by 27^6 < 2^29 in total, and the truncated part is zero or at least 27^-6.
    const FIXED_POINT_BITS: u32 = 54;
    const INVERSE_OF_27_POW_6: u64 = ((1_u128 << (FIXED_POINT_BITS + 38)) / 27_u128.pow(6)) as u64 + 1;
    let mut rest = ((u128::from(number) * u128::from(INVERSE_OF_27_POW_6)) >> 38) as u64 + 1;
    let mut digits = 0;
    for _ in 0..4 {
        digits = digits << 16 | u64::from(DIGIT_PAIRS[(rest >> FIXED_POINT_BITS) as usize]);
        rest = (rest & ((1 << FIXED_POINT_BITS) - 1)) * 729;
    }
    // Instants from 2008 to 2327 have seven digits.
    if (27_u64.pow(6)..27_u64.pow(7)).contains(&number) {
        return ((digits << 8).to_be_bytes(), 7);
    }
    // Count from the first byte that is not the digit zero, keeping at least the last.
    let zeros = (digits ^ u64::from_be_bytes([BASE_27[0]; 8])).leading_zeros().min(56) / 8;
    ((digits << (8 * zeros)).to_be_bytes(), 8 - zeros as usize)
}

/// The base-27 digit of a value below 27.
pub(crate) const fn digit_27(value: u8) -> u8 {
    BASE_27[value as usize]
}

/// The digits of legacy suffixes (1.3): `2`-`9`, `a`-`z` without `l`, `A`-`V` without `I` and `O`.
const BASE_53: &[u8; 53] = b"23456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUV";

const VALUE_53: [u8; 256] = values(BASE_53);

/// The value of a base-53 digit.
pub(crate) const fn value_53(byte: u8) -> Option<u8> {
    match VALUE_53[byte as usize] {
        NOT_IBIP => None,
        value => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_encoding_is_the_long_one() {
        // All boundaries between digit pairs with their neighbours, and samples of the whole range.
        let borders = (0..8).flat_map(|n| (1..27).map(move |digit| digit * 27_u64.pow(n)));
        let near = borders.flat_map(|border| border - 1..=border + 1);
        let walk = (0..27_u64.pow(8)).step_by(90_017);
        for number in near.chain(walk).chain([27_u64.pow(8) - 1]) {
            let (short, length) = encode_27_short(number);
            let mut long = [0; 14];
            let start = encode_27(number, &mut long);
            assert_eq!(short[..length], long[start..], "{number}");
        }
    }
}
