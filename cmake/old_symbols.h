/* Before every file of a portable program: the versions of these functions of the mathematical library that C libraries
 * before 2.29 have. They report errors as SVID asked for, too (matherr), which nothing here uses. */
#if defined(__x86_64__)
#define OLD "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLD "GLIBC_2.17"
#endif
#ifdef OLD
__asm__(".symver exp,exp@" OLD "\n.symver exp2,exp2@" OLD "\n.symver log,log@" OLD "\n.symver log2,log2@" OLD
	"\n.symver pow,pow@" OLD);
#undef OLD
#endif
