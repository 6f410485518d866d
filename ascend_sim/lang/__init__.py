"""AscendC's comforts, written in instructions only: TPipe, TQue, TBuf, jit, block indices."""
