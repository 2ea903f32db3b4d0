#include "textflag.h"

// func fetchAll(addresses *uintptr, n, lines uintptr)
TEXT ·fetchAll(SB), NOSPLIT, $0-24
	MOVD addresses+0(FP), R0
	MOVD n+8(FP), R1
	MOVD lines+16(FP), R2

next:
	MOVD.P 8(R0), R3
	MOVD   R2, R4

line:
	PRFM (R3), PLDL1KEEP
	ADD  $64, R3
	SUBS $1, R4
	BNE  line
	SUBS $1, R1
	BNE  next
	RET
