/*
 * A lane is a place for one content in every vector. All lanes advance by as many blocks as the one
 * that has the fewest left; a lane that is done takes the next job. Long jobs go first, so that no
 * lane is left alone with one at the end.
 */
#include "base/sha256-many.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/sha256-many-i.h"

#define FEW 4 /* jobs that are not worth a vector */

static void digest_each(const struct sha256_job *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sha256_of(jobs[i].data, jobs[i].len, jobs[i].digest);
}

#if defined(__x86_64__)

#include <cpuid.h>

#define LANES 8
#define WORDS 8 /* of the state */
#define BLOCK 64
/*
 * The stack that ASan makes up aligns nothing to the 64 bytes of a vector; what is part of a function
 * without ASan must be so, too.
 */
#define PLAIN  no_sanitize("address")
#define INLINE static inline __attribute__((always_inline, PLAIN))

typedef uint32_t lanes __attribute__((vector_size(LANES * sizeof(uint32_t))));

/* Where each lane's next block is, and how far the one behind it: 0 for an idle lane. */
struct feed {
	const uint8_t *at[LANES];
	size_t step[LANES];
};

typedef void (*mix_fn)(lanes state[WORDS], const struct feed *feed, size_t blocks);

static const uint32_t start[WORDS] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
				       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

static const uint32_t round_key[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

/* --- one block of every lane, FIPS 180-4, 6.2.2 ------------------------------------------- */

#define TURN(x, n) ((x) >> (n) | (x) << (32 - (n)))

/* Of the schedule: w[i] for the round 16 after this one. */
#define EXTEND(w, i)                                                                  \
	((w)[i] += (TURN((w)[((i) + 1) & 15], 7) ^ TURN((w)[((i) + 1) & 15], 18) ^    \
		    (w)[((i) + 1) & 15] >> 3) +                                       \
		   (w)[((i) + 9) & 15] +                                              \
		   (TURN((w)[((i) + 14) & 15], 17) ^ TURN((w)[((i) + 14) & 15], 19) ^ \
		    (w)[((i) + 14) & 15] >> 10))

#define ROUND(a, b, c, d, e, f, g, h, w, k)                                  \
	do {                                                                 \
		lanes sum = (h) + (TURN(e, 6) ^ TURN(e, 11) ^ TURN(e, 25)) + \
			    ((g) ^ ((e) & ((f) ^ (g)))) + (w) + (k);         \
		(d) += sum;                                                  \
		(h) = sum + (TURN(a, 2) ^ TURN(a, 13) ^ TURN(a, 22)) +       \
		      (((a) & (b)) | ((c) & ((a) | (b))));                   \
	} while (0)

INLINE uint32_t big_endian(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return __builtin_bswap32(word);
}

/* Eight rounds, after which every word is in its place again. */
INLINE void mix_eight(lanes s[WORDS], const lanes *w, const uint32_t *k)
{
	ROUND(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], w[0], k[0]);
	ROUND(s[7], s[0], s[1], s[2], s[3], s[4], s[5], s[6], w[1], k[1]);
	ROUND(s[6], s[7], s[0], s[1], s[2], s[3], s[4], s[5], w[2], k[2]);
	ROUND(s[5], s[6], s[7], s[0], s[1], s[2], s[3], s[4], w[3], k[3]);
	ROUND(s[4], s[5], s[6], s[7], s[0], s[1], s[2], s[3], w[4], k[4]);
	ROUND(s[3], s[4], s[5], s[6], s[7], s[0], s[1], s[2], w[5], k[5]);
	ROUND(s[2], s[3], s[4], s[5], s[6], s[7], s[0], s[1], w[6], k[6]);
	ROUND(s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[0], w[7], k[7]);
}

INLINE void load_block(lanes w[16], const uint8_t *const at[LANES])
{
#define WORD(lane) big_endian(at[lane] + 4 * (size_t)t)
	_Static_assert(LANES == 8, "a word for each lane");
	for (int t = 0; t < 16; t++)
		w[t] = (lanes){ WORD(0), WORD(1), WORD(2), WORD(3),
				WORD(4), WORD(5), WORD(6), WORD(7) };
#undef WORD
}

INLINE void mix_block(lanes state[WORDS], const uint8_t *const at[LANES])
{
	lanes s[WORDS] = { state[0], state[1], state[2], state[3],
			   state[4], state[5], state[6], state[7] };
	lanes w[16];

	load_block(w, at);
	for (int t = 0; t < 64; t += 16) {
		mix_eight(s, w, round_key + t);
		mix_eight(s, w + 8, round_key + t + 8);
		if (t == 48)
			break;
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++)
			EXTEND(w, i);
	}
#pragma GCC unroll 8
	for (int i = 0; i < WORDS; i++)
		state[i] += s[i];
}

INLINE void mix(lanes state[WORDS], const struct feed *feed, size_t blocks)
{
	const uint8_t *at[LANES];

	memcpy(at, feed->at, sizeof(at));
	for (; blocks > 0; blocks--) {
		mix_block(state, at);
		for (int i = 0; i < LANES; i++)
			at[i] += feed->step[i];
	}
}

#define MIX(features) __attribute__((target(features), PLAIN)) static void

MIX("avx2") mix_avx2(lanes state[WORDS], const struct feed *feed, size_t blocks)
{
	mix(state, feed, blocks);
}

MIX("avx2,avx512f,avx512vl")
mix_avx512(lanes state[WORDS], const struct feed *feed, size_t blocks)
{
	mix(state, feed, blocks);
}

/* --- lanes -------------------------------------------------------------------------------- */

struct lane {
	struct sha256_job *job; /* NULL: idle */
	const uint8_t *at;
	size_t blocks;          /* from there on, all whole */
	uint8_t end[2 * BLOCK]; /* what is left of the content, and its padding */
	size_t end_blocks;      /* that are still to come */
};

static void lane_begin(struct lane *l, struct sha256_job *job)
{
	const uint8_t *data = job->data;
	const size_t rest = job->len % BLOCK, whole = job->len - rest;
	const uint64_t bits = (uint64_t)job->len * 8;

	memset(l->end, 0, sizeof(l->end));
	if (rest > 0)
		memcpy(l->end, data + whole, rest);
	l->end[rest] = 0x80;
	l->end_blocks = rest < BLOCK - 8 ? 1 : 2;
	for (size_t i = 0; i < 8; i++)
		l->end[l->end_blocks * BLOCK - 1 - i] = (uint8_t)(bits >> 8 * i);
	l->job = job;
	l->at = whole > 0 ? data : l->end;
	l->blocks = whole / BLOCK;
}

/* Some blocks are mixed in.  True if the job is done. */
static bool lane_move(struct lane *l, size_t blocks)
{
	l->at += blocks * BLOCK;
	l->blocks -= blocks;
	if (l->blocks > 0)
		return false;
	l->at = l->end;
	l->blocks = l->end_blocks;
	l->end_blocks = 0;
	return l->blocks == 0;
}

static void give_digest(const lanes state[WORDS], int lane, uint8_t *digest)
{
	for (size_t i = 0; i < SHA256_SIZE; i++)
		digest[i] = (uint8_t)(state[i / 4][lane] >> (24 - 8 * (i % 4)));
}

struct run {
	struct lane lane[LANES];
	lanes state[WORDS];
	struct sha256_job *next, *end; /* that nobody has begun */
};

/* Give each idle lane a job.  The blocks that all busy ones can go on by; 0: all is done. */
static size_t feed_lanes(struct run *r, struct feed *feed)
{
	static const uint8_t idle[BLOCK];
	size_t blocks = 0;

	for (int i = 0; i < LANES; i++) {
		struct lane *l = &r->lane[i];

		if (!l->job && r->next < r->end) {
			lane_begin(l, r->next++);
			for (int w = 0; w < WORDS; w++)
				r->state[w][i] = start[w];
			if (l->blocks == 0)
				IGNORE_RESULT(lane_move(l, 0), "the padding is at least a block");
		}
		feed->at[i] = l->job ? l->at : idle;
		feed->step[i] = l->job ? BLOCK : 0;
		if (l->job && (blocks == 0 || l->blocks < blocks))
			blocks = l->blocks;
	}
	return blocks;
}

static int longer_first(const void *a, const void *b)
{
	const struct sha256_job *x = a, *y = b;

	return (x->len < y->len) - (x->len > y->len);
}

static void run_jobs(mix_fn fn, struct sha256_job *jobs, size_t n)
{
	struct run r = { .next = jobs, .end = jobs + n };
	struct feed feed;
	size_t blocks;

	qsort(jobs, n, sizeof(*jobs), longer_first);
	while ((blocks = feed_lanes(&r, &feed)) > 0) {
		fn(r.state, &feed, blocks);
		for (int i = 0; i < LANES; i++) {
			struct lane *l = &r.lane[i];

			if (l->job && lane_move(l, blocks)) {
				give_digest(r.state, i, l->job->digest);
				l->job = NULL;
			}
		}
	}
}

static mix_fn mix_of(enum sha256_way way)
{
	if (way == SHA256_AVX512)
		return __builtin_cpu_supports("avx512vl") ? mix_avx512 : NULL;
	return __builtin_cpu_supports("avx2") ? mix_avx2 : NULL;
}

static mix_fn best_mix;

/* With instructions for SHA-256 one content is as fast.  In a virtual machine the question takes its time. */
static void find_best(void)
{
	unsigned a, b, c, d;

	if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA))
		return;
	best_mix = mix_of(SHA256_AVX512);
	if (!best_mix)
		best_mix = mix_of(SHA256_AVX2);
}

static mix_fn mix_here(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_best);
	return best_mix;
}

bool sha256_many_by(enum sha256_way way, struct sha256_job *jobs, size_t n)
{
	mix_fn fn = mix_of(way);

	if (fn && n > 0)
		run_jobs(fn, jobs, n);
	return fn;
}

bool sha256_many_is_wide(void)
{
	return mix_here();
}

void sha256_many(struct sha256_job *jobs, size_t n)
{
	const mix_fn fn = n < FEW ? NULL : mix_here();

	if (fn)
		run_jobs(fn, jobs, n);
	else
		digest_each(jobs, n);
}

#else

bool sha256_many_by(enum sha256_way way, struct sha256_job *jobs, size_t n)
{
	return false;
}

bool sha256_many_is_wide(void)
{
	return false;
}

void sha256_many(struct sha256_job *jobs, size_t n)
{
	digest_each(jobs, n);
}

#endif
