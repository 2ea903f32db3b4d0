#include "textflag.h"

// func fetchAll(addresses *uintptr, n, lines uintptr)
TEXT ·fetchAll(SB), NOSPLIT, $0-24
	MOVQ addresses+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ lines+16(FP), DX

next:
	MOVQ (SI), AX
	MOVQ DX, BX

line:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	DECQ BX
	JNZ  line
	ADDQ $8, SI
	DECQ CX
	JNZ  next
	RET
