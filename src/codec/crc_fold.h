#pragma once
/* CRC-32 of a reflected polynomial at the speed of carry-less multiplication.
 *
 * A message is folded: 128 bits that lie D bits before others are replaced by their product with
 * x^D modulo the polynomial, added to those (Gopal et al., "Fast CRC Computation for Generic
 * Polynomials Using PCLMULQDQ Instruction", Intel, 2009). How many bits an instruction multiplies
 * is found out when the program runs: 256 or 128 on x86-64, 128 on arm64, none elsewhere. */
#include <stddef.h>
#include <stdint.h>

enum crc_way {
	CRC_TABLES,     /* eight bytes a step */
	CRC_FOLDS,      /* 128 bits an instruction */
	CRC_WIDE_FOLDS, /* 256 bits an instruction */
};

/* What a polynomial needs. Static objects are { .polynomial = P }; the rest is filled in at first
 * use. */
struct crc_poly {
	uint32_t polynomial; /* reflected: the highest bit is x^0 */
	enum crc_way way;    /* the fastest of this processor */
	uint32_t table[8][256];
	/* {x^(D + 32), x^(D - 32)} modulo the polynomial, for D of 128, 256 ... 2048 bits */
	uint64_t fold_128[2], fold_256[2], fold_512[2], fold_1024[2], fold_2048[2];
};

/* Fills in all but the polynomial; once for each, before any other call. */
void crc_poly_init(struct crc_poly *);
/* The CRC's state (not complemented) after `n` more bytes; `way` is at most the polynomial's own.
 * Pure. */
uint32_t crc_fold(const struct crc_poly *, enum crc_way way, uint32_t state, const void *bytes,
		  size_t n);
/* a * b modulo the polynomial; both reflected, `a` is not 0. Pure. */
uint32_t crc_multiply(uint32_t polynomial, uint32_t a, uint32_t b);
/* x^n modulo the polynomial, reflected. Pure. */
uint32_t crc_power(uint32_t polynomial, uint64_t n);
