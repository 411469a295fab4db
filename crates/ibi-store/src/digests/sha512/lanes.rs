//! The rounds of SHA-512 (FIPS 180-4, 6.4) for four inputs in parallel, one per SIMD lane.

use super::Sha512State;

/// Number of inputs hashed in parallel.
pub(in crate::digests) const LANES: usize = 4;

/// Whether that is faster on this CPU than hashing sequentially.
pub(super) fn is_simd_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return fearless_simd::Level::new().as_avx2().is_some();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Advances four states. The inputs have equal length and consist of whole blocks.
pub(super) fn compress(states: &mut [Sha512State; LANES], inputs: [&[u8]; LANES]) {
    let pieces = inputs.map(|input| input.as_chunks().0);
    #[cfg(target_arch = "x86_64")]
    {
        use fearless_simd::Level;
        let level = Level::new();
        // The same code, compiled for CPUs that rotate a word, and combine three, in one
        // instruction (AVX-512).
        if let Some(simd) = level.as_avx512() {
            return vectors::compress_lanes(simd, states, pieces);
        }
        if let Some(simd) = level.as_avx2() {
            return vectors::compress_lanes(simd, states, pieces);
        }
    }
    for (state, pieces) in states.iter_mut().zip(pieces) {
        sha2::block_api::compress512(state, pieces);
    }
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use fearless_simd::{Simd, SimdBase as _, u64x4};

    use super::{LANES, Sha512State};
    use crate::digests::sha512::SHA512_BLOCK_BYTES;

    /// All blocks of four inputs. The CPU supports it: an `S` exists only after detection.
    pub(super) fn compress_lanes<S: Simd>(
        simd: S,
        states: &mut [Sha512State; LANES],
        pieces: [&[[u8; SHA512_BLOCK_BYTES]]; LANES],
    ) {
        simd.vectorize(
            #[inline(always)]
            || {
                let [one, two, three, four] = pieces;
                let mut state = [u64x4::splat(simd, 0); 8];
                for (word, all) in state.iter_mut().enumerate() {
                    *all = u64x4::from_slice(simd, &gather_lanes(|lane| states[lane][word]));
                }
                for (((one, two), three), four) in one.iter().zip(two).zip(three).zip(four) {
                    compress_block(simd, &mut state, [one, two, three, four]);
                }
                for (word, all) in state.into_iter().enumerate() {
                    let mut words = [0; LANES];
                    all.store_slice(&mut words);
                    (0..LANES).for_each(|lane| states[lane][word] = words[lane]);
                }
            },
        );
    }

    #[inline(always)]
    fn gather_lanes(word: impl Fn(usize) -> u64) -> [u64; LANES] {
        [word(0), word(1), word(2), word(3)]
    }

    #[inline(always)]
    fn rotate_right<S: Simd, const BY: u32>(word: u64x4<S>) -> u64x4<S> {
        (word >> BY) | (word << (64 - BY))
    }

    /// One block of each input.
    #[inline(always)]
    fn compress_block<S: Simd>(
        simd: S,
        state: &mut [u64x4<S>; 8],
        pieces: [&[u8; SHA512_BLOCK_BYTES]; LANES],
    ) {
        // The last sixteen words of the schedule.
        let mut schedule = [u64x4::splat(simd, 0); 16];
        for (number, all) in schedule.iter_mut().enumerate() {
            let word = |lane: usize| u64::from_be_bytes(pieces[lane].as_chunks().0[number]);
            *all = u64x4::from_slice(simd, &gather_lanes(word));
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
        for begun in (0..ROUND_CONSTANTS.len()).step_by(16) {
            for i in 0..16 {
                if begun > 0 {
                    let (late, early) = (schedule[(i + 1) & 15], schedule[(i + 14) & 15]);
                    let sigma0 = rotate_right::<S, 1>(late) ^ rotate_right::<S, 8>(late) ^ (late >> 7);
                    let sigma1 = rotate_right::<S, 19>(early) ^ rotate_right::<S, 61>(early) ^ (early >> 6);
                    schedule[i] = schedule[i] + sigma0 + (schedule[(i + 9) & 15] + sigma1);
                }
                let sum1 = rotate_right::<S, 14>(e) ^ rotate_right::<S, 18>(e) ^ rotate_right::<S, 41>(e);
                let choice = g ^ (e & (f ^ g));
                let first = h + sum1 + (choice + ROUND_CONSTANTS[begun + i]) + schedule[i];
                let sum0 = rotate_right::<S, 28>(a) ^ rotate_right::<S, 34>(a) ^ rotate_right::<S, 39>(a);
                let majority = ((a ^ b) & (b ^ c)) ^ b;
                (h, g, f, e) = (g, f, e, d + first);
                (d, c, b, a) = (c, b, a, first + (sum0 + majority));
            }
        }
        for (word, more) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *word += more;
        }
    }

    /// FIPS 180-4, 4.2.3.
    #[rustfmt::skip]
    const ROUND_CONSTANTS: [u64; 80] = [
        0x428a_2f98_d728_ae22, 0x7137_4491_23ef_65cd, 0xb5c0_fbcf_ec4d_3b2f, 0xe9b5_dba5_8189_dbbc,
        0x3956_c25b_f348_b538, 0x59f1_11f1_b605_d019, 0x923f_82a4_af19_4f9b, 0xab1c_5ed5_da6d_8118,
        0xd807_aa98_a303_0242, 0x1283_5b01_4570_6fbe, 0x2431_85be_4ee4_b28c, 0x550c_7dc3_d5ff_b4e2,
        0x72be_5d74_f27b_896f, 0x80de_b1fe_3b16_96b1, 0x9bdc_06a7_25c7_1235, 0xc19b_f174_cf69_2694,
        0xe49b_69c1_9ef1_4ad2, 0xefbe_4786_384f_25e3, 0x0fc1_9dc6_8b8c_d5b5, 0x240c_a1cc_77ac_9c65,
        0x2de9_2c6f_592b_0275, 0x4a74_84aa_6ea6_e483, 0x5cb0_a9dc_bd41_fbd4, 0x76f9_88da_8311_53b5,
        0x983e_5152_ee66_dfab, 0xa831_c66d_2db4_3210, 0xb003_27c8_98fb_213f, 0xbf59_7fc7_beef_0ee4,
        0xc6e0_0bf3_3da8_8fc2, 0xd5a7_9147_930a_a725, 0x06ca_6351_e003_826f, 0x1429_2967_0a0e_6e70,
        0x27b7_0a85_46d2_2ffc, 0x2e1b_2138_5c26_c926, 0x4d2c_6dfc_5ac4_2aed, 0x5338_0d13_9d95_b3df,
        0x650a_7354_8baf_63de, 0x766a_0abb_3c77_b2a8, 0x81c2_c92e_47ed_aee6, 0x9272_2c85_1482_353b,
        0xa2bf_e8a1_4cf1_0364, 0xa81a_664b_bc42_3001, 0xc24b_8b70_d0f8_9791, 0xc76c_51a3_0654_be30,
        0xd192_e819_d6ef_5218, 0xd699_0624_5565_a910, 0xf40e_3585_5771_202a, 0x106a_a070_32bb_d1b8,
        0x19a4_c116_b8d2_d0c8, 0x1e37_6c08_5141_ab53, 0x2748_774c_df8e_eb99, 0x34b0_bcb5_e19b_48a8,
        0x391c_0cb3_c5c9_5a63, 0x4ed8_aa4a_e341_8acb, 0x5b9c_ca4f_7763_e373, 0x682e_6ff3_d6b2_b8a3,
        0x748f_82ee_5def_b2fc, 0x78a5_636f_4317_2f60, 0x84c8_7814_a1f0_ab72, 0x8cc7_0208_1a64_39ec,
        0x90be_fffa_2363_1e28, 0xa450_6ceb_de82_bde9, 0xbef9_a3f7_b2c6_7915, 0xc671_78f2_e372_532b,
        0xca27_3ece_ea26_619c, 0xd186_b8c7_21c0_c207, 0xeada_7dd6_cde0_eb1e, 0xf57d_4f7f_ee6e_d178,
        0x06f0_67aa_7217_6fba, 0x0a63_7dc5_a2c8_98a6, 0x113f_9804_bef9_0dae, 0x1b71_0b35_131c_471b,
        0x28db_77f5_2304_7d84, 0x32ca_ab7b_40c7_2493, 0x3c9e_be0a_15c9_bebc, 0x431d_67c4_9c10_0d4c,
        0x4cc5_d4be_cb3e_42b6, 0x597f_299c_fc65_7e2a, 0x5fcb_6fab_3ad6_faec, 0x6c44_198c_4a47_5817,
    ];
}
