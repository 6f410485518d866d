"""The AscendC C++ name of what the language calls by pyasc's name."""

from __future__ import annotations

ASCENDC = {
    "ascend_is_aic": "ASCEND_IS_AIC",
    "ascend_is_aiv": "ASCEND_IS_AIV",
    "bitwise_and": "And",
    "bitwise_not": "Not",
    "bitwise_or": "Or",
    "check_local_memory_ia": "CheckLocalMemoryIA",
    "get_icache_preload_status": "GetICachePreloadStatus",
    "get_sys_workspace": "GetSysWorkSpacePtr",
    "get_tpipe_ptr": "GetTPipePtr",
    "ib_set": "IBSet",
    "ib_wait": "IBWait",
    "icache_preload": "ICachePreLoad",
    "printf": "printf",
    "scalar_get_sff_value": "ScalarGetSFFValue",
    "set_fix_pipe_pre_quant_flag": "SetFixpipePreQuantFlag",
    "set_hf32_mode": "SetHF32Mode",
    "set_hf32_trans_mode": "SetHF32TransMode",
    "set_mm_layout_transform": "SetMMLayoutTransform",
    "trans_data_to_5hd": "TransDataTo5HD",
}
"""Names that are not simply the words of pyasc's, each with a capital."""

NEWER = {
    "block_reduce_max": "ReduceDataBlockMax",
    "block_reduce_min": "ReduceDataBlockMin",
    "block_reduce_sum": "ReduceDataBlockSum",
    "compare_scalar": "Compares",
    "get_acc_val": "GetReduceRepeatSumSpr",
    "get_reduce_max_min_count": "GetReduceRepeatMaxMinSpr",
    "init_const_value": "Fill",
    "pair_reduce_sum": "ReducePairElem",
    "set_atomic_none": "DisableDmaAtomic",
    "whole_reduce_max": "ReduceRepeatMax",
    "whole_reduce_min": "ReduceRepeatMin",
    "whole_reduce_sum": "ReduceRepeatSum",
}
"""Names that newer documents use for the same."""


def ascendc_name(name: str) -> str:
    """Return the C++ name: `data_copy` is `DataCopy`."""
    return ASCENDC.get(name) or "".join(word.capitalize() for word in name.split("_"))
