/* A library that ends after the others: what `errno` is then. It is loaded behind them. */
#include <errno.h>
#include <stdio.h>

__attribute__((destructor)) static void destructor(void)
{
	int found = errno;

	printf("at the end %d\n", found);
	fflush(stdout);
}
