/* Four rounds with one instruction, the fifth word of the state with another. */
#include "base/sha1-i.h"

#include <arm_neon.h>

#include "base/sys.h"

/* Four rounds of the twenty that `phase` counts. */
static uint32x4_t turn(int phase, uint32x4_t abcd, uint32_t e, uint32x4_t in)
{
	if (phase == 0)
		return vsha1cq_u32(abcd, e, in);
	return phase == 2 ? vsha1mq_u32(abcd, e, in) : vsha1pq_u32(abcd, e, in);
}

static void take_block(uint32x4_t *state, uint32_t *fifth, const uint8_t *block)
{
	static const uint32_t constants[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
	const uint32x4_t was = *state;
	const uint32_t fifth_was = *fifth;
	uint32x4_t w[4];

	for (int i = 0; i < 4; i++)
		w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(block + 16 * (size_t)i)));
#pragma GCC unroll 20
	for (int i = 0; i < 20; i++) {
		const uint32x4_t in = vaddq_u32(w[i % 4], vdupq_n_u32(constants[i / 5]));
		const uint32_t next = vsha1h_u32(vgetq_lane_u32(*state, 0));

		*state = turn(i / 5, *state, *fifth, in);
		*fifth = next;
		/* The last four rounds need no words after theirs. */
		if (i < 16)
			w[i % 4] =
			    vsha1su1q_u32(vsha1su0q_u32(w[i % 4], w[(i + 1) % 4], w[(i + 2) % 4]),
					  w[(i + 3) % 4]);
	}
	*state = vaddq_u32(*state, was);
	*fifth += fifth_was;
}

bool sha1_take(uint32_t h[5], const uint8_t *data, size_t n)
{
	uint32x4_t state;
	uint32_t fifth;

	if (!sys_has_sha())
		return false;
	state = vld1q_u32(h);
	fifth = h[4];
	for (; n > 0; n--, data += 64)
		take_block(&state, &fifth, data);
	vst1q_u32(h, state);
	h[4] = fifth;
	return true;
}
