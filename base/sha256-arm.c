/* Four rounds with two instructions, and four words of the schedule with two more. */
#include "base/sha256-i.h"

#include <arm_neon.h>

#include "base/sys.h"

static void take_block(uint32x4_t state[2], const uint8_t *block)
{
	const uint32x4_t abcd = state[0], efgh = state[1];
	uint32x4_t w[4];

	for (int i = 0; i < 4; i++)
		w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(block + 16 * (size_t)i)));
	for (int i = 0; i < 16; i++) {
		const uint32x4_t in =
		    vaddq_u32(w[i % 4], vld1q_u32(sha256_constants + 4 * (size_t)i));
		const uint32x4_t was = state[0];

		state[0] = vsha256hq_u32(state[0], state[1], in);
		state[1] = vsha256h2q_u32(state[1], was, in);
		/* The last four rounds need no words after theirs. */
		if (i < 12)
			w[i % 4] = vsha256su1q_u32(vsha256su0q_u32(w[i % 4], w[(i + 1) % 4]),
						   w[(i + 2) % 4], w[(i + 3) % 4]);
	}
	state[0] = vaddq_u32(state[0], abcd);
	state[1] = vaddq_u32(state[1], efgh);
}

bool sha256_take(uint32_t h[8], const uint8_t *data, size_t n)
{
	uint32x4_t state[2];

	if (!sys_has_sha())
		return false;
	state[0] = vld1q_u32(h);
	state[1] = vld1q_u32(h + 4);
	for (; n > 0; n--, data += 64)
		take_block(state, data);
	vst1q_u32(h, state[0]);
	vst1q_u32(h + 4, state[1]);
	return true;
}
