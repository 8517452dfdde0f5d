#include "pair.h"
static const struct test_case cases[] = {{0}};
int main(int c,char**v){return RUN_CASES(c,v,cases);}
